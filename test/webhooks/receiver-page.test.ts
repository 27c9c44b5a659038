// Only on SQLite: runs a receiver of the documents.

import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { becomes, DELIVERING, send } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'
import { build } from '../support/cli.ts'
import { freePort } from '../support/port.ts'
import { startApp } from '../support/app.ts'

// The receiver that the page about webhooks shows, as it stands there, but for its port.

t.before(build)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

t.test('the receiver of the page about webhooks takes what is signed, and nothing else', async (t) => {
  const [, sample = ''] = /```js\n(import \{ createServer.*?)```/s.exec(readFileSync(`${ROOT}docs/how-to/receive-webhooks.md`, 'utf8')) ?? []
  t.ok(sample.split('\n').filter((line) => line !== '').length <= 10, 'ten lines')
  const service = await startApp(t, DELIVERING)
  const ada = await service.openAccount()
  const port = await freePort()
  const {
    body: { secret }
  } = await ada.post('/webhooks', { url: `http://127.0.0.1:${port}/`, events: ['message.created'] })

  // Below the project's root, where Node resolves petstore-lab/client to this package.
  const file = `${ROOT}.test-${port}.mjs`
  t.teardown(() => { rmSync(file, { force: true }) })
  writeFileSync(file, sample.replace('4000', String(port)))
  const receiver = spawn(process.execPath, [file], {
    env: { PATH: process.env['PATH'], WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => { receiver.kill() })
  let said = ''
  for (const stream of [receiver.stdout, receiver.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  const unsigned = async (): Promise<number> =>
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }).then(
      ({ status }) => status,
      () => 0
    )
  await eventually(async () => await unsigned() === 401)
  await becomes(ada, await send(ada, 'Hello'), 'delivered')
  t.match(said, /type: 'message\.created'/)
})
