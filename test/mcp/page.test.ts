// Only on SQLite: runs the commands of a page.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { ROOT } from '../support/cli.ts'
import { stocked } from '../support/fixtures.ts'
import { callTool } from './messages.ts'

const page = readFileSync(join(ROOT, 'docs/how-to/let-an-agent-use-the-store.md'), 'utf8')

t.test('the commands of the page do what it says', async (t) => {
  const { port, openAccount } = await startApp(t)
  const ada = await openAccount()
  const petId = await stocked(ada, 5)
  const [first, second] = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) =>
    block!.replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`).replaceAll('psk_...', ada.key!))
  const run = async (block: string): Promise<string> => (await promisify(execFile)('bash', ['-c', block])).stdout
  const [, message] = /^data: (.*)$/m.exec(await run(first!))!
  t.match(JSON.parse(message!), { result: { isError: false, structuredContent: { body: [{ id: petId }] } } })
  t.match(JSON.parse(await run(second!)), { operation: 'placeOrder' })
  await t.rejects(callTool(port, ada, 'placeOrder', { body: { petId } }))
  t.equal((await ada.get('/store/orders')).body.length, 1)
})
