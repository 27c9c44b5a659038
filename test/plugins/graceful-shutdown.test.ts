// Only on SQLite: closes connections.

import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { holdWrites, nextWrite } from '../support/groups.ts'
import { watchConnections } from '../support/socket.ts'

/** Far longer than the grace period: a machine is never so slow. */
const LATE_MS = 60_000

t.test('a request that takes longer than SHUTDOWN_GRACE_MS is disconnected', { timeout: 300_000 }, async (t) => {
  const { app, openAccount } = await startApp(t, { SHUTDOWN_GRACE_MS: '1000', REQUEST_TIMEOUT_MS: '600000' })
  const ada = await openAccount()
  const release = await holdWrites(app)
  t.teardown(release)
  const waits = nextWrite(app)
  const answer = ada.post('/messages', { message: 'Hello' }).then(({ status }) => status, () => 'disconnected')
  await waits
  const end = app.close()
  t.equal(await Promise.race([answer, sleep(LATE_MS, 'late', { ref: false })]), 'disconnected')
  release()
  await end
})

t.test('a request in flight gets its response within the grace period', async (t) => {
  const { app, openAccount } = await startApp(t, { SHUTDOWN_GRACE_MS: String(LATE_MS) })
  const ada = await openAccount()
  const release = await holdWrites(app)
  const waits = nextWrite(app)
  const answer = ada.post('/messages', { message: 'Hello' })
  await waits
  const end = app.close()
  await sleep(200)
  release()
  t.equal((await answer).status, 201)
  await end
})

t.test('a stopping service refuses requests and closes their connections', { timeout: 300_000 }, async (t) => {
  const { app, openAccount, port } = await startApp(t, { SHUTDOWN_GRACE_MS: String(LATE_MS) })
  const ada = await openAccount()
  const release = await holdWrites(app)
  t.teardown(release)
  // It keeps the service from its end.
  const waits = nextWrite(app)
  const inFlight = ada.post('/messages', { message: 'Hello' })
  await waits
  const heardFrom = watchConnections(app.server)
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => { text += chunk })
  socket.write('GET /livez HTTP/1.1\r\n')
  await heardFrom(1)
  const end = app.close()
  await sleep(200)
  socket.write('Host: x\r\n\r\n')
  const closed = await Promise.race([
    once(socket, 'close').then(() => 'closed'), sleep(LATE_MS / 2, 'open', { ref: false })
  ])
  t.match(text, /^HTTP\/1\.1 503 .*shutting_down/s)
  t.match(text, /^connection: close\r$/im)
  t.equal(closed, 'closed')
  release()
  t.equal((await inFlight).status, 201)
  await end
})
