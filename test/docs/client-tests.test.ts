// Only on SQLite: runs commands and samples of the pages over HTTP.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { build, ROOT } from '../support/cli.ts'

t.before(build)

/** Runs the example's suite against a client. @returns what it printed */
async function run (port: number, client: string): Promise<string> {
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', 'client.test.js'], {
    cwd: join(ROOT, 'examples/client-tests'),
    env: { PATH: process.env['PATH'], PETSTORE_URL: `http://127.0.0.1:${port}`, CLIENT: client },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => { child.kill() })
  let out = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) out += chunk as string
  return out
}

t.test('the example suite finds three bugs in the naive client, and none in the careful one', async (t) => {
  const { port } = await startApp(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  t.match(await run(port, './careful-client.js'), /^# pass 3\n# fail 0$/m)
  const naive = await run(port, './naive-client.js')
  t.match(naive, /^# pass 0\n# fail 3$/m)
  for (const name of ['whose response was lost', 'takes a second', 'delivered twice']) {
    t.match(naive, new RegExp(`^ *not ok \\d+ - .*${name}`, 'm'))
  }
})
