// Only on SQLite: adds up metrics without a database.

import t from 'tap'
import { createLogger } from '../../src/monitoring/logger.ts'
import { SharedMetrics } from '../../src/start/shared-metrics.ts'
import { freePort } from '../support/port.ts'

const counted = (value: number): object[] =>
  [{ name: 'requests', help: 'Requests', type: 'counter', aggregator: 'sum', values: [{ value, labels: {} }] }]

t.test('a worker that ends while another one has not answered counts once', async (t) => {
  const port = await freePort()
  const shared = new SharedMetrics()
  t.teardown(() => { shared.close() })
  let onAsked = (): void => {}
  await shared.listen({ host: '127.0.0.1', port }, async () => {
    onAsked()
    return [[1, counted(5)], [2, counted(2)]]
  }, createLogger({ LOG_LEVEL: 'silent' }))
  const read = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  t.match(await read(), /^requests 7$/m)
  // The first worker has answered, and reports once more before it ends.
  onAsked = () => {
    shared.set(1, counted(6))
    shared.end(1)
    onAsked = () => {}
  }
  t.match(await read(), /^requests 8$/m)
})

t.test('HEAD is answered as GET, and nothing else than /metrics is there', async (t) => {
  const port = await freePort()
  const shared = new SharedMetrics()
  t.teardown(() => { shared.close() })
  await shared.listen({ host: '127.0.0.1', port }, async () => [[1, counted(5)]], createLogger({ LOG_LEVEL: 'silent' }))
  const statusOf = async (method: string, path: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status
  t.equal(await statusOf('HEAD', '/metrics'), 200)
  t.equal(await statusOf('POST', '/metrics'), 404)
  t.equal(await statusOf('GET', '/'), 404)
})
