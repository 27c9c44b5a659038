// Only on SQLite: the exam starts a service of its own.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { build, CLI, folder, launch, petstore } from '../support/cli.ts'

t.before(build)

const NODE = JSON.stringify(process.execPath)
const CLIENT = `${NODE} ${JSON.stringify(join(import.meta.dirname, 'client.mjs'))}`

async function examine (t: Test, client: string, ...args: string[]) {
  return await petstore(t, ['exam', '--client', client, ...args])
}

t.test('a passed exam prints a line for each paper, and exits with 0', async (t) => {
  const { code, out, err } = await examine(t, CLIENT, '--only', 'sunset,not-modified')
  t.same([code, err], [0, ''])
  t.equal(out, 'not-modified   passed\nsunset         passed\n2 of 2 papers passed.\n', 'in the order of the papers')
})

t.test('a failed exam says why, with the requests, also as JSON and as JUnit XML', async (t) => {
  const junit = join(folder(t), 'results.xml')
  const flawed = `${CLIENT} no-listPets,no-cache`
  const papers = ['--only', 'pages,not-modified,sunset']
  const [text, json] = await Promise.all([
    examine(t, flawed, ...papers, '--junit', junit), examine(t, flawed, ...papers, '--json')
  ])
  t.same([text.code, text.err, json.code, json.err], [1, '', 1, ''])
  const lines = text.out.split('\n')
  t.same(lines.slice(0, 4), [
    'pages          not taken',
    '    The client does not know the task listPets.',
    'not-modified   failed',
    '    The unchanged pet was transferred again: no request had If-None-Match.'
  ])
  t.match(lines[4], /^ {8}\d+ {2}\d\d:\d\d:\d\d\.\d{3} {2}GET \/pets\/\d+ {2}200, \d+ ms$/)
  t.same(lines.slice(-3), ['sunset         passed', '1 of 3 papers passed.', ''])

  const report = JSON.parse(json.out)
  t.match(report, { client: flawed, passed: false })
  const results = report.papers.map(({ paper, verdict }: Record<string, string>) => [paper, verdict])
  t.same(results, [['pages', 'not taken'], ['not-modified', 'failed'], ['sunset', 'passed']])
  const [{ text: sentence, requests }] = report.papers[1].findings
  t.match(sentence, 'no request had If-None-Match')
  const shown = { id: Number, method: 'GET', path: /^\/pets\/\d+$/, status: 200, outcome: 'answered' }
  t.match(requests, [shown, shown, shown])

  const xml = readFileSync(junit, 'utf8')
  t.match(xml, '<testsuite name="petstore exam" tests="3" failures="2"')
  t.match(xml, /<testcase classname="petstore exam" name="sunset" time="[\d.]+"\/>/)
  t.match(xml, /name="not-modified" time="[\d.]+">\s+<failure type="failed" message="The unchanged pet/)
})

t.test('a client that does not start fails with a sentence', { skip: process.platform === 'win32' }, async (t) => {
  const { code, out, err } = await examine(t, 'no-such-program', '--only', 'sunset')
  t.same([code, err], [1, ''])
  t.match(out, /^sunset {9}failed\n {4}The client ended with code 127.*: .*no-such-program.*\n0 of 1 papers passed\.\n/)
})

t.test('a file that cannot be written is named before the exam', async (t) => {
  const file = join(folder(t), 'missing', 'results.xml')
  const { code, out, err } = await examine(t, 'no-such-program', '--only', 'sunset', '--junit', file)
  t.same([code, out], [1, ''])
  t.match(err, /^Cannot write .*results\.xml: /)
})

t.test('the papers are listed', async (t) => {
  const { code, out } = await petstore(t, ['exam', '--list'])
  t.equal(code, 0)
  t.equal(out.trim().split('\n').length, 12)
  t.match(out, /^not-modified {3}A good client reads a record again with If-None-Match/m)
  const { out: json } = await petstore(t, ['exam', '--list', '--json', '--only', 'sunset'])
  t.match(JSON.parse(json), [{ name: 'sunset', goodClient: /^moves to the successor/ }])
})

t.test('a wrong call exits with 2', async (t) => {
  const cases: Array<[args: string[], sentence: RegExp]> = [
    [[], /^Use --client with the command/],
    [['--client', ' '], /^Use --client with the command/],
    [['--client', CLIENT, '--only', 'pages,pens'], /^There is no paper pens\. The papers are: lost-answer, retry/]
  ]
  for (const [args, sentence] of cases) {
    const { code, err } = await petstore(t, ['exam', ...args])
    t.equal(code, 2)
    t.match(err, sentence)
  }
})

t.test('a signal ends the exam and the client', { skip: process.platform === 'win32' && 'signals' }, async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const connected = once(server, 'connection')
  const client = `${NODE} -e "require('net').connect(${port}, '127.0.0.1')"`
  const running = launch(t, process.execPath, [CLI, 'exam', '--client', client, '--only', 'sunset'])
  const [socket] = await connected as [Socket]
  // The end of the client resets it.
  socket.on('error', () => {}).resume()
  const closed = new Promise((resolve) => { socket.once('close', resolve) })
  const { code, err } = await running.stop('SIGINT')
  t.same([code, err], [1, 'The exam was stopped.\n'])
  await closed
})
