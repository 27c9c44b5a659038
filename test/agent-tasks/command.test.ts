// Only on SQLite: the command starts a service on SQLite.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp } from '../support/app.ts'
import { build, folder, launch, ROOT, type Ended } from '../support/cli.ts'

const EXAMPLE = join(ROOT, 'examples/agent-tasks')
const CAREFUL = `"${process.execPath}" "${join(EXAMPLE, 'agents/careful.js')}"`
const CARELESS = `"${process.execPath}" "${join(EXAMPLE, 'agents/careless.js')}"`

t.before(build)

async function run (t: Test, ...args: string[]): Promise<Ended> {
  return await launch(t, process.execPath, [join(EXAMPLE, 'run.js'), ...args]).ended
}

t.test('the command starts a service, and prints what each agent did', async (t) => {
  const only = ['--only', 'stop-at-the-sunset,order-once']
  const careful = await run(t, '--agent', CAREFUL, ...only)
  t.match(careful, { code: 0, out: /^order-once +passed\nstop-at-the-sunset +passed\n\n2 of 2 tasks passed\.\n$/ })
  const careless = await run(t, '--agent', CARELESS, ...only)
  t.equal(careless.code, 1, careless.err)
  t.match(careless.out, new RegExp([
    '^order-once +failed',
    ' {4}The agent left 2 orders in the store; it was asked for one\\.',
    ' {8}request \\d+: POST /store/orders \\{.*\\} → lost',
    ' {8}request \\d+: POST /store/orders \\{.*\\} → 201',
    ' {4}The agent answered:',
    ' {8}Done\\.',
    'stop-at-the-sunset +failed',
    '[^]*',
    '0 of 2 tasks passed\\.\n$'
  ].join('\n')))
})

t.test('the command uses a service that runs, and prints results for programs', async (t) => {
  const { port } = await startApp(t)
  const { code, out, err } = await run(
    t, '--agent', CARELESS, '--url', `http://127.0.0.1:${port}/`, '--only', 'refuse-to-oversell', '--json')
  t.equal(code, 1, err)
  const [result] = JSON.parse(out)
  t.match(result, { task: 'refuse-to-oversell', words: /^A customer wants five Milos/, answer: 'Ordered: 5\n' })
  t.match(result.findings[0], { text: /^The agent ordered 5 Milos/, requests: [{ operation: 'placeOrder' }] })
})

t.test('an agent that fails or hangs fails its task, and leaves no process', async (t) => {
  const { port } = await startApp(t)
  const common = ['--url', `http://127.0.0.1:${port}`, '--only', 'cancel-the-right-one']
  const file = join(folder(t), 'config')
  const failing = await run(t, ...common, '--agent', `cat > /dev/null; cp "$PETSTORE_MCP_CONFIG" "${file}"; exit 3`)
  t.match(failing, { code: 1, out: /The agent ended with 3\.\n/ })
  t.match(JSON.parse(readFileSync(file, 'utf8')).mcpServers.petstore, { type: 'http', url: `http://127.0.0.1:${port}/mcp` })
  // The end of the command closes its error output, which the last process of the agent has as well.
  const hanging = await run(t, ...common, '--timeout', '0.5', '--agent', 'sleep 600 & wait')
  t.match(hanging, { code: 1, out: /The agent did not end within 0\.5 s\.\n/ })
})

t.test('the command lists the tasks, and refuses what it does not know', async (t) => {
  t.match(await run(t, '--list'), { code: 0, out: /^order-once +A good agent places an order once, / })
  for (const [args, message] of [
    [[], /^Usage: /], [['--agent', 'true', '--only', 'none'], /^There is no task none\n/],
    [['--agent', 'true', '--timeout', 'soon'], /^--timeout must be a number of seconds/], [['--agnt', 'x'], /agnt/],
    [['--agent', 'true', '--url', 'http://127.0.0.1:1'], /./]
  ] as const) t.match(await run(t, ...args), { code: 2, out: '', err: message })
})
