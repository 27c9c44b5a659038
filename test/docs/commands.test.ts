// Only on SQLite: runs commands and samples of the pages over HTTP.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startApp } from '../support/app.ts'

// Readers paste the commands of the documents. Each of them is run by a test, and this list says by which.

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string): string => readFileSync(ROOT + file, 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

/** A command, the file that runs it, and the text of the file that does. */
const RUN: Array<[command: RegExp, file: string, how: RegExp]> = [
  [/^npm start$/, '.ci/run', /exec npm start/],
  [/^npm test( -- [\w/. -]+)?$/, '.ci/run', /npm test/], // what follows -- goes to the same program, as is tested below
  [/^npm run (lint|types|test:tools)$/, '.ci/run', /npm run -s lint\n.*npm run -s types\n.*npm run -s test:tools/],
  [/^npx tap test\/[\w/.-]+\.test\.ts$/, 'test/tools/usual-commands.test.ts', /'tap'/],
  [/^npx prisma (validate|format|generate)$/, 'test/tools/usual-commands.test.ts', /run\('prisma', command\)/],
  [/^npx prisma studio$/, 'test/tools/studio.test.ts', /'studio'/],
  [/^npm run dev$/, 'test/tools/usual-commands.test.ts', /'run', 'dev'/],
  [/^npm run torture$/, 'test/torture/torture.test.ts', /await runScenario\(name, /],
  [/^npm run build$/, 'test/support/cli.ts', /scripts\/prepare\.mjs'/],
  [/^npm run reference$/, 'test/docs/reference.test.ts', /await referencePages\(\)/],
  [/^npm run modules$/, 'test/architecture/architecture.test.ts', /drawPictures\(imports\)/],
  [/^npm run migration -- \w+$/, 'test/docs/migration.test.ts', /'add_category_color'/],
  [/^npx --no petstore worker$/, 'test/deliveries/delivery-worker.test.ts', /'worker'/],
  [/^npx --no petstore exam --only /, 'test/tools/exam-page.test.ts', /'exam', '--only', only/],
  [/^npx --no petstore (listen|trigger) /, 'test/cli/listen.test.ts', /'listen'[^]*'trigger'/],
  [/^npx --no petstore /, 'test/cli/command-line-page.test.ts', /command-line\.md/],
  [/^(KEY=\$\()?curl -s .*127\.0\.0\.1:3000/, 'test/docs/commands.test.ts', /startsWith\('First request'\)/],
  [/^curl -N .*\/events/, 'test/docs/commands.test.ts', /startsWith\('First request'\)/]
]

/** Pages whose blocks a test pastes whole. */
const PASTED: Record<string, { file: string, how: RegExp }> = {
  'docs/how-to/test-your-client.md': { file: 'test/client/documents.test.ts', how: /test-your-client\.md/ },
  'docs/how-to/let-an-agent-use-the-store.md': { file: 'test/mcp/page.test.ts', how: /let-an-agent-use-the-store/ },
  'docs/tutorial.md': { file: 'test/docs/tutorial.test.ts', how: /docs\/tutorial\.md/ }
}

/** Commands that no test can run, and why. */
const NOT_RUN: Array<[command: RegExp, because: string]> = [
  [/^docker /, 'a Docker daemon is not on every machine; test/docs/image.test.ts reads the files'],
  [/^jq /, 'needs another program; test/monitoring/logger.test.ts checks the fields of the log'],
  [
    /^npx (-p )?(openapi-typescript|@hey-api\/openapi-ts|orval|@kubb\/cli)@[\d.]+ /,
    'test/tools calls the same generators'
  ],
  [/^(java -jar openapi-generator|oapi-codegen|openapi-python-client)/, 'needs Java, Go or Python'],
  [/^cargo progenitor /, 'needs Rust'],
  [/^apt-get install /, 'changes the machine; .ci/run installs the same packages'],
  [/^litestream /, 'needs another program, and a bucket'],
  [/^npm run bench$/, 'takes about two hours of an idle machine']
]

/** Returns each command of the `sh` blocks of a page, without the settings before it. */
function commandsOf (page: string): string[] {
  return [...page.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].flatMap(([, block]) =>
    block!.replace(/\\\n\s*/g, '').split('\n').map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#') && !/^export \w+=\S+$/.test(line))
      .map((line) => line.replace(/^([A-Z_]+=[^\s$(]+ )+/, '')))
}

const docs = readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.md'))
  .sort()
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'AGENTS.md', 'llms.txt', ...docs.map((name) => `docs/${name}`)]

t.test('every command in the documents is run by a test or by .ci/run', async (t) => {
  const commands = pages
    .filter((page) => PASTED[page] === undefined)
    .flatMap((page) => commandsOf(read(page)).map((command) => ({ page, command })))
  t.ok(commands.length > 20)
  for (const { page, command } of commands) {
    if (NOT_RUN.some(([pattern]) => pattern.test(command))) continue
    const known = RUN.find(([pattern]) => pattern.test(command))
    t.ok(known, `${page}: ${command}`)
    if (known === undefined) continue
    const [, file, how] = known
    t.ok(existsSync(ROOT + file) && how.test(read(file)), `${file} runs ${command}`)
  }
  for (const [page, { file, how }] of Object.entries(PASTED)) {
    t.ok(commandsOf(read(page)).length > 1 && how.test(read(file)), `${file} runs ${page}`)
  }
  const all = commands.map(({ command }) => command)
  for (const [pattern] of [...RUN.filter(([, file]) => existsSync(ROOT + file)), ...NOT_RUN]) {
    t.ok(
      all.some((command) => pattern.test(command)),
      `some page has ${pattern}`
    )
  }
})

t.test('every command of petstore in the documents is one of the command line', async (t) => {
  const names = readdirSync(`${ROOT}src/cli`).flatMap((file) =>
    [...read(`src/cli/${file}`).matchAll(/\bprogram\.command\('(\w+)'\)/g)].map(([, name]) => name!)
  )
  t.ok(names.length >= 10)
  for (const page of pages) {
    for (const [, name] of read(page).matchAll(/npx --no petstore ([a-z]+)/g)) { t.ok(names.includes(name!), `${page}: petstore ${name}`) }
  }
})

t.test('every npm script that the documents name is there', async (t) => {
  for (const page of pages) {
    for (const [, name] of read(page).matchAll(/npm run (?:-s )?([a-z:]+)/g)) { t.ok(scripts[name!], `${page}: npm run ${name}`) }
  }
  t.match(scripts['test'], /test\/run\.ts$/, 'one file is tested as all are: what follows -- goes to the runner')
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
  const [requests = '', stream = ''] = [...section.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) =>
    block!.replaceAll(':3000', `:${port}`)
  )
  const shell = spawn('bash', ['-c', `${requests}\necho\n${stream.replace('curl', 'exec curl -s')}`], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
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

t.test('the library of the page about tests is that of the code', async (t) => {
  const page = read('docs/how-to/test-with-a-store.md')
  const [, names = ''] = /import \{ (buildApp, [\w, ]+) \} from 'petstore-lab'/.exec(page) ?? []
  const unknown = names.split(', ').filter((name) => !new RegExp(`\\b${name}\\b`).test(read('src/public-api.ts')))
  t.strictSame(unknown, [])
})
