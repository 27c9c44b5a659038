import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startApp } from '../support/app.ts'

// A command in the documents is one that somebody pastes: each is run somewhere, and this list knows where.

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string): string => readFileSync(ROOT + file, 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

/** A command, the file that runs it, and how it does. */
const RUN: Array<[command: RegExp, file: string, how: RegExp]> = [
  [/^npm start$/, '.ci/run', /exec npm start/],
  [/^npm test$/, '.ci/run', /npm test/],
  [/^npm run (lint|types)$/, '.ci/run', /npm run -s (lint|types)/],
  [/^npm test -- test\/categories\/categories\.test\.ts$/, '.ci/run', /npm test/], // the same script
  [/^npm run torture$/, 'test/torture/torture.test.ts', /await perform\(name, program/],
  [/^npm run (build|generate)$/, 'test/support/cli.ts', /scripts\/prepare\.mjs', 'build'/],
  [/^npm run petstore -- migrate$/, 'test/start/start.test.ts', /run\(t, 'migrate'/],
  [/^npm run migration -- add_category_color$/, 'test/docs/migration.test.ts', /'add_category_color'/],
  [/^npx --no petstore /, 'test/cli/readme.test.ts', /README\.md/],
  [/^(KEY=\$\()?curl -s .*127\.0\.0\.1:3000/, 'test/docs/commands.test.ts', /startsWith\('First request'\)/],
  [/^curl -N .*\/events/, 'test/docs/commands.test.ts', /startsWith\('First request'\)/]
]

/** What no test can run, and why. */
const NOT_RUN: Array<[command: RegExp, because: string]> = [
  [/^docker /, 'a Docker daemon is not on every machine; test/docs/image.test.ts reads the files'],
  [/^litestream /, 'a program of others, and a bucket'],
  [/^npm run bench$/, 'takes 40 minutes of an idle machine']
]

/** Each command of the `sh` blocks of a page, without the settings before it. */
function commandsOf (page: string): string[] {
  return [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, block]) =>
    block!.replace(/\\\n\s*/g, '').split('\n').map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#') && !/^export \w+=\S+$/.test(line))
      .map((line) => line.replace(/^([A-Z_]+=[^\s$(]+ )+/, '')))
}

const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...readdirSync(`${ROOT}docs`).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]

t.test('every command in the documents is run by a test or by .ci/run', async (t) => {
  const commands = pages.flatMap((page) => commandsOf(read(page)).map((command) => ({ page, command })))
  t.ok(commands.length > 20)
  for (const { page, command } of commands) {
    if (NOT_RUN.some(([pattern]) => pattern.test(command))) continue
    const known = RUN.find(([pattern]) => pattern.test(command))
    t.ok(known, `${page}: ${command}`)
    if (known === undefined) continue
    const [, file, how] = known
    t.ok(existsSync(ROOT + file) && how.test(read(file)), `${file} runs ${command}`)
  }
  const all = commands.map(({ command }) => command)
  for (const [pattern] of [...RUN.filter(([, file]) => existsSync(ROOT + file)), ...NOT_RUN]) t.ok(all.some((command) => pattern.test(command)), `some page has ${pattern}`)
})

t.test('every npm script that the documents name is there', async (t) => {
  for (const page of pages) {
    for (const [, name] of read(page).matchAll(/npm run (?:-s )?([a-z:]+)/g)) t.ok(scripts[name!], `${page}: npm run ${name}`)
  }
})

t.test('every link of the documents leads to a file, and to a heading of it', async (t) => {
  const anchors = (file: string): Set<string> => new Set([...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-')))
  for (const page of pages) {
    for (const [, target] of read(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path = '', anchor] = target!.split('#')
      const file = path === '' ? page : fileURLToPath(new URL(path, `file://${ROOT}${page}`)).slice(ROOT.length)
      t.ok(existsSync(ROOT + file), `${page}: ${target}`)
      if (anchor !== undefined) t.ok(anchors(file).has(anchor), `${page}: ${target}`)
    }
  }
})

t.test('the first requests of the README work as pasted', async (t) => {
  if (spawnSync('bash', ['-c', 'command -v curl']).status !== 0) {
    t.pass('', { skip: 'there is no bash with curl' })
    return
  }
  const { port } = await startApp(t, { DELIVERY: 'true' })
  const section = read('README.md').split(/^## /m).find((text) => text.startsWith('First request'))!
  const [requests = '', stream = ''] = [...section.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!.replaceAll(':3000', `:${port}`))
  const shell = spawn('bash', ['-c', `${requests}\necho\n${stream.replace('curl', 'exec curl -s')}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { shell.kill() })
  let out = ''
  for await (const chunk of shell.stdout.setEncoding('utf8')) {
    out += chunk as string
    if (out.includes('event: message.delivered')) shell.kill()
  }
  if (shell.exitCode === null && shell.signalCode === null) await once(shell, 'close')
  t.match(JSON.parse(out.split('\n')[0]!), { message: 'Hello', status: 'queued' })
  t.match(out, /^id: 1\nevent: message\.created\ndata: \{/m)
  t.match(out, /^id: 2\nevent: message\.delivered\n/m)
})
