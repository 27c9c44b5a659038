// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { startApp } from '../support/app.ts'
import { build, launch, ROOT } from '../support/cli.ts'

// The programs of the documents, as a reader runs them in a clone: with the built client.

t.before(build)

/** Runs a program against a service until it ends, or has printed a text. @returns what it printed */
async function run (t: Test, program: string, lastText?: string): Promise<string> {
  const { port } = await startApp(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  // Below the project's root, where Node resolves petstore-lab/client to this package.
  const file = join(ROOT, `.test-${port}.mjs`)
  t.teardown(() => { rmSync(file, { force: true }) })
  writeFileSync(file, program.replaceAll(':3000', `:${port}`))
  const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  let out = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    out += chunk as string
    if (lastText !== undefined && out.includes(lastText)) child.kill()
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  if (lastText === undefined) t.equal(child.exitCode, 0, out)
  return out
}

/** Returns a pattern of a text in which `…` stands for what differs each time. */
function pattern (text: string): RegExp {
  return new RegExp(text.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.+?'))
}

t.test('the programs of the page about the client print what it says', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/use-the-client.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, kind, text]) => ({ kind, text: text! }))
  t.strictSame([...new Set(blocks.map(({ kind }) => kind))], ['js', 'text'])
  const programs = blocks.filter(({ kind }) => kind === 'js')
  t.ok(programs.length >= 8)
  const printed = (await run(t, programs.map(({ text }) => text).join('console.log("---")\n')))
    .split('---\n')
  for (const [i, { text }] of programs.entries()) {
    const next = blocks[blocks.findIndex((block) => block.text === text) + 1]
    t.match(printed[i], next?.kind === 'text' ? pattern(next.text) : /^$/, text)
  }
})

t.test('the programs of the page about tests of clients print what it says', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/test-your-client.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, kind, text]) => ({ kind, text: text! }))
  t.strictSame([...new Set(blocks.map(({ kind }) => kind))].sort(), ['js', 'python', 'sh', 'text'])
  const programs = blocks.filter(({ kind, text }) => kind === 'js' && !text.startsWith('test('))
  t.ok(programs.length >= 8)
  const printed = (await run(t, programs.map(({ text }) => text).join('console.log("---")\n'))).split('---\n')
  for (const [i, { text }] of programs.entries()) {
    const next = blocks[blocks.findIndex((block) => block.text === text) + 1]
    t.match(printed[i], next?.kind === 'text' ? pattern(next.text) : /^$/, text)
  }
})

t.test('the check of attempts passes for the client, and fails for one that should have waited longer', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/test-your-client.md'), 'utf8')
  const blocks = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text]) => text!)
  const [open] = blocks
  const body = blocks.find((text) => text.startsWith('test('))!
  t.equal(body.trim().split('\n').length, 6)
  const { port } = await startApp(t)
  for (const pause of ['1000', '60000']) {
    const file = join(ROOT, `.test-check-${pause}-${process.pid}.mjs`)
    t.teardown(() => { rmSync(file, { force: true }) })
    writeFileSync(file, `import assert from 'node:assert/strict'
import test from 'node:test'
${open!.replaceAll(':3000', `:${port}`)}
const [item] = await store.listInventory({ status: 'available', limit: 1 })
await store.putJournal({ keep: 100 })
${body.replace('1000', pause)}`)
    const { code, out } = await launch(t, process.execPath, [file]).ended
    t.equal(code, pause === '1000' ? 0 : 1, out)
    if (pause !== '1000') t.match(out, /came after \d+ ms, less than 60000 ms; Retry-After asked for 1000 ms/)
  }
})

t.test('the requests of the page about tests of clients print what it says', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/test-your-client.md'), 'utf8')
  const { port } = await startApp(t)
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```/gm)]
  t.equal(blocks.length, page.match(/^```sh$/gm)!.length, 'each block has its answer')
  const script = blocks.map(([, commands]) => commands).join("echo '---'\n").replaceAll(':3000', `:${port}`)
  const { stdout } = await promisify(execFile)('bash', ['-c', script])
  for (const [i, printed] of stdout.split('---\n').entries()) {
    const [, commands, answer] = blocks[i]!
    // Answers have no line end.
    t.match(printed.trim(), pattern(answer!.trim()), commands!)
  }
})

t.test('the test of the README finds the client that orders twice, and no other', async (t) => {
  const [, program = ''] = /^```js\n([\s\S]*?)^```/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
  t.ok(program.trim().split('\n').filter((line) => line !== '').length <= 10, 'ten lines')
  const clients = {
    careful: 'createClient({ url, apiKey }).placeOrder({ petId })',
    naive: `(async () => {
      const headers = { Authorization: \`Bearer \${apiKey}\`, 'Content-Type': 'application/json' }
      const request = () => fetch(\`\${url}/store/orders\`, { method: 'POST', headers, body: JSON.stringify({ petId }) })
      await request().catch(request)
    })()`
  }
  for (const [name, call] of Object.entries(clients)) {
    const file = join(ROOT, `.test-${name}-${process.pid}.mjs`)
    t.teardown(() => { rmSync(file, { force: true }) })
    writeFileSync(file, `import assert from 'node:assert/strict'
import { createClient } from 'petstore-lab/client'
const yourClient = (url, apiKey) => ({ placeOrder: async (petId) => await ${call} })
${program}`)
    const { code, err } = await launch(t, process.execPath, [file]).ended
    t.equal(code, name === 'careful' ? 0 : 1, err)
    t.match(err, name === 'careful' ? /^$/ : /AssertionError.*\n\n2 !== 1/, name)
  }
})
