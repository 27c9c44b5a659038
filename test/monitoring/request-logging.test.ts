// Only on SQLite: reads log lines.

import t from 'tap'
import { createClient } from '../../src/client/client.ts'
import { freshDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'
import { startService } from '../torture/service.ts'

t.test('a request whose connection closes before its response is complete is logged', async (t) => {
  const service = await startService({ DATABASE_URL: await freshDatabase(t), LOG_LEVEL: 'info', LAB: 'true' })
  t.teardown(service.kill)
  const url = `http://127.0.0.1:${service.port}`
  const { apiKey } = await createClient({ url }).createAccount({ name: 'Ada' })
  const store = createClient({ url, apiKey, retries: 0 })
  await store.createFault({ operation: 'listPets', effect: { type: 'delay', ms: 60_000 } })
  await t.rejects(store.listPets({}, { timeoutMs: 200 }))

  const stream = await openStream(service, { key: apiKey })
  stream.close()

  const accept = 'application/json, text/event-stream'
  await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, accept, 'content-type': 'application/json' },
    body: '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "listOrders", "arguments": {}}}'
  }).then((response) => response.text())

  const line = (route: string): Record<string, unknown> | undefined =>
    service.output().split('\n').filter((text) => text.includes(`"route":"${route}"`)).map((text) => JSON.parse(text))[0]
  await eventually(() => ['/pets', '/events', '/store/orders'].every((route) => line(route) !== undefined))
  t.match(line('/pets'), { method: 'GET', incomplete: true, account: 1, key: apiKey.slice(4, 12) })
  t.notOk('status' in line('/pets')!, 'no response has begun')
  t.match(line('/events'), { method: 'GET', status: 200, incomplete: true, account: 1 })
  t.match(line('/accounts'), { method: 'POST', status: 201, incomplete: undefined })
  t.match(line('/store/orders'), { status: 200, incomplete: undefined }, 'the request of a tool')
})
