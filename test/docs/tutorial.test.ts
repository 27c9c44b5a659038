// Only on SQLite: runs commands and samples of the pages over HTTP.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answers, build, CLI, folder, launch, until } from '../support/cli.ts'
import { database } from '../support/database.ts'
import { freePort } from '../support/port.ts'

// The tutorial as a reader pastes it: one shell, each block after the one before, each answer as the page shows it.

t.before(build)

/** The start migrates and fills a demo store, which takes long on a machine that runs many tests. */
const START_TIMEOUT_MS = 120_000

const page = readFileSync(new URL('../../docs/tutorial.md', import.meta.url), 'utf8')
const skip = database !== 'sqlite' && 'the tutorial starts with npm start, which opens a SQLite file'

/** Printed after each block, so that its output is known to be complete. */
const END = '-- end of block --'

interface Step {
  commands: string
  /** What the page says that the commands print; `…` stands for any text. */
  expected: string | undefined
}

/** Returns the blocks of the page after `npm start`, each with the answer that follows it. */
function stepsOf (page: string, port: string): Step[] {
  const blocks = [...page.matchAll(/^```(sh|json|text)\n([\s\S]*?)^```/gm)].map(([, kind, text]) => ({
    kind,
    text: text!.replaceAll(':3000', `:${port}`)
  }))
  return blocks.flatMap(({ kind, text }, i) => {
    if (kind !== 'sh' || text === 'npm start\n') return []
    const next = blocks[i + 1]
    return [{ commands: text, expected: next === undefined || next.kind === 'sh' ? undefined : next.text }]
  })
}

function pattern (expected: string): RegExp {
  return new RegExp(
    `^${expected
      .trim()
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[\\s\\S]+?')}$`
  )
}

/** Starts a shell in a folder and returns a function that runs commands in it and returns what they print. */
function shell (cwd: string): { run: (commands: string) => Promise<string>, end: () => void } {
  const bash = spawn('bash', [], { cwd, stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  const chunks = bash.stdout.setEncoding('utf8')[Symbol.asyncIterator]()
  return {
    async run (commands) {
      bash.stdin.write(`${commands}\necho '${END}'\n`)
      let text = ''
      while (!text.includes(END)) {
        const { value, done } = await chunks.next() as { value: string, done: boolean }
        if (done) throw new Error(`the shell ended: ${text}`)
        text += value
      }
      return text.slice(0, text.indexOf(END))
    },
    end () {
      // With the mirror that it started.
      if (bash.exitCode === null) process.kill(-bash.pid!, 'SIGKILL')
    }
  }
}

/** Saves the program of the page in a folder. @returns its path */
function saveMirror (cwd: string): string {
  const [, name = '', program = ''] = /Save this as `([\w.]+)`[\s\S]*?^```js\n([\s\S]*?)^```/m.exec(page) ?? []
  writeFileSync(join(cwd, name), program)
  return join(cwd, name)
}

t.test('the commands of the tutorial print what the page says', { skip }, async (t) => {
  const port = String(await freePort())
  const service = launch(t, process.execPath, [CLI, 'start', '--demo'], { env: { PORT: port, LOG_LEVEL: 'warn' } })
  await until(service, async () => await answers(`http://127.0.0.1:${port}/readyz`), START_TIMEOUT_MS)
  const cwd = folder(t)
  const { run, end } = shell(cwd)
  t.teardown(end)
  saveMirror(cwd)
  const steps = stepsOf(page, port)
  t.ok(steps.length >= 15)
  for (const { commands, expected } of steps) {
    const printed = await run(commands)
    if (expected === undefined) continue
    t.match(printed.trim(), pattern(expected), commands)
  }
})

t.test('the mirror copies again after 410 and store.replaced, and stops on 401', { skip }, async (t: Test) => {
  const replaced = 'id: 6\ndata: {"id":6,"type":"store.replaced","data":{}}\n\n'
  const streams: Array<[status: number, body: string]> = [[410, '{}'], [503, '{}'], [200, replaced], [401, '{}']]
  const requests: string[] = []
  const service = createServer(({ url = '', headers }, response) => {
    requests.push(url)
    const [status, body] = headers.accept === 'text/event-stream' ? streams.shift() ?? [401, '{}'] : [200, '[]']
    response.writeHead(status, { 'event-id': '5' }).end(body)
    // A program that repeats its requests for ever.
    if (requests.length > 10) void mirror.stop('SIGKILL')
  }).listen(0, '127.0.0.1')
  t.teardown(() => service.close())
  await once(service, 'listening')
  const cwd = folder(t)
  const { port } = service.address() as AddressInfo
  const mirror = launch(t, process.execPath, [saveMirror(cwd), `http://127.0.0.1:${port}`, 'key'], { cwd })
  const { code } = await mirror.ended
  t.equal(code, 1)
  const copy = ['/events?limit=1', '/pets?limit=100']
  t.strictSame(requests, [...copy, '/events', ...copy, '/events', '/events', ...copy, '/events'])
})

t.test('every program and every answer of the tutorial is compared', async (t) => {
  const kinds = [...page.matchAll(/^```(\w+)\n/gm)].map(([, kind]) => kind!)
  t.strictSame(kinds.filter((kind) => kind === 'js').length, 1)
  t.strictSame([...new Set(kinds)].sort(), ['js', 'json', 'sh', 'text'])
  for (const [i, kind] of kinds.entries()) {
    if (kind === 'json' || kind === 'text') t.equal(kinds[i - 1], 'sh', 'an answer follows its commands')
  }
})
