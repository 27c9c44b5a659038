// Only on SQLite: checks log lines.

import t from 'tap'
import pg from 'pg'
import { openConnection } from '../../src/database/sqlite/open-connection.ts'
import { untilUnlocked } from '../../src/database/sqlite/transactions.ts'
import { freshDatabase } from '../support/database.ts'
import { sendBytes } from '../support/socket.ts'
import { lockWrites } from '../torture/harness.ts'
import { startService } from '../torture/service.ts'

/** Part of every body, header and query that is sent. No log line may contain it. */
const MARK = 'Mq7ZsecretJ3'

interface Reply { status: number, text: string }

t.test(
  'no log line contains a key, an authorization header or a body, whatever the request and whatever the failure',
  async (t) => {
    t.setTimeout(120_000)
    const url = await freshDatabase(t)
    const service = await startService({
      DATABASE_URL: url,
      LOG_LEVEL: 'trace',
      REQUEST_TIMEOUT_MS: '5000',
      WEBHOOKS_ALLOW_PRIVATE: 'true'
    })
    t.teardown(async () => {
      await service.kill()
    })

    async function ask (
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {}
    ): Promise<Reply> {
      const payload = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
      const response = await fetch(`http://127.0.0.1:${service.port}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...payload
      })
      return { status: response.status, text: await response.text() }
    }

    const statuses = new Set<number>()
    const secrets = [MARK]
    async function openAccount (): Promise<{ apiKey: string, authorization: { authorization: string } }> {
      const { apiKey } = JSON.parse(
        (await ask('POST', '/accounts', { name: MARK, email: `${MARK}@example.com` })).text
      )
      secrets.push(apiKey)
      return { apiKey, authorization: { authorization: `Bearer ${apiKey}` } }
    }
    const { apiKey, authorization } = await openAccount()
    const own = async (
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {}
    ): Promise<Reply> => {
      const reply = await ask(method, path, body, { ...authorization, ...headers })
      statuses.add(reply.status)
      return reply
    }
    const made = async (method: string, path: string, body: unknown): Promise<any> =>
      JSON.parse((await own(method, path, body)).text)

    // Every operation succeeds. The webhook of a missing receiver comes first: it gets the events of the others.
    const webhook = await made('POST', '/webhooks', {
      url: `http://127.0.0.1:1/${MARK}?${MARK}`,
      events: ['message.created']
    })
    const rotated = await made('POST', `/webhooks/${webhook.id}/rotate`, undefined)
    secrets.push(webhook.secret, rotated.secret)
    await own('PATCH', `/webhooks/${webhook.id}`, { url: `http://127.0.0.1:1/${MARK}` })
    await own('POST', `/webhooks/${webhook.id}/test`)
    const { id: categoryId } = await made('POST', '/categories', { name: MARK, description: MARK })
    const { id: petId } = await made('POST', '/pets', { name: MARK, categoryId })
    await own('PATCH', `/inventory/${petId}`, { quantity: 5 })
    const { id: orderId } = await made('POST', '/store/orders', { petId })
    const { id: messageId } = await made('POST', '/messages', { message: MARK })
    const key = await made('POST', '/account/keys', { label: MARK })
    secrets.push(key.apiKey)
    for (const path of [
      '/account',
      '/account/keys',
      `/account/keys/${key.id}`,
      '/pets',
      `/pets/${petId}`,
      '/categories',
      `/categories/${categoryId}`,
      '/store/orders',
      `/store/orders/${orderId}`,
      '/inventory',
      `/inventory/${petId}`,
      '/messages',
      `/messages/${messageId}`,
      '/events',
      '/webhooks',
      `/webhooks/${webhook.id}`,
      `/webhooks/${webhook.id}/attempts`
    ]) {
      await own('GET', path)
    }
    await own('PATCH', `/pets/${petId}`, { name: `${MARK} II` }, { 'idempotency-key': MARK })
    await own('PATCH', `/pets/${petId}`, { name: `${MARK} III` }, { 'idempotency-key': MARK })
    await own('PATCH', `/categories/${categoryId}`, { name: `${MARK} II` }, { 'if-match': `"${MARK}"` })
    await own('PATCH', `/categories/${categoryId}`, { name: `${MARK} II` })
    await own('PATCH', `/store/orders/${orderId}`, { complete: true })
    await own('DELETE', `/store/orders/${orderId}`)
    const { id: cancelledId } = await made('POST', '/store/orders', { petId })
    await own('DELETE', `/store/orders/${cancelledId}`)
    const { id: lastPetId } = await made('POST', '/pets', { name: MARK, categoryId })
    await own('DELETE', `/pets/${lastPetId}`)
    const { id: emptyId } = await made('POST', '/categories', { name: MARK })
    await own('DELETE', `/categories/${emptyId}`)
    await own('DELETE', `/account/keys/${key.id}`)
    await own('POST', `/webhooks/${webhook.id}/resend`, { eventId: 1 })
    await own('DELETE', `/webhooks/${webhook.id}`)
    await ask('DELETE', '/account', undefined, (await openAccount()).authorization)

    // Errors at every stage of a request.
    await own('POST', '/pets', `{"name": "${MARK}", `)
    await own('POST', '/pets', { name: MARK, [MARK]: 1 })
    await own('POST', '/pets', { name: MARK, categoryId: 4_000_000_000 })
    await own('POST', '/pets', `{"name": "${MARK}"}`, { 'content-type': 'text/plain' })
    await own('POST', '/pets', { name: MARK.repeat(20_000) })
    await own('GET', `/pets?name=${MARK}`)
    await own('GET', `/pets?status=${MARK}`)
    // A key in a path is a mistake of its client.
    await own('GET', `/pets/${apiKey}`)
    await own('GET', `/${apiKey}?${MARK}`)
    await own('GET', `/${apiKey}/%zz`, undefined, { 'request-id': 'broken-escape' })
    await own('PUT', '/pets', { name: MARK })
    await own('GET', `/pets?x=${MARK.repeat(1_000)}`)
    for (const credential of [`Bearer ${key.apiKey}`, `Bearer ${MARK}`, `Basic ${MARK}`, `bearer ${apiKey}x`, MARK]) {
      statuses.add((await ask('GET', '/pets', undefined, { authorization: credential })).status)
    }
    await sendBytes(service.port, `${MARK}\r\n\r\n`)
    await sendBytes(
      service.port,
      `GET /${MARK} HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${apiKey}\r\n${MARK}\r\n\r\n`
    )
    await sendBytes(service.port, `GET / HTTP/1.1\r\nHost: pets\r\nX: ${MARK.repeat(2_000)}\r\n\r\n`)
    await sendBytes(
      service.port,
      `POST /messages HTTP/1.1\r\nHost: pets\r\nAuthorization: Bearer ${apiKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"message": "${MARK}`
    )

    // Failures: a lock that blocks for too long, and then a missing table.
    const release = await lockWrites(url)
    await Promise.all([
      own('POST', '/pets', { name: MARK, categoryId }),
      own('PATCH', `/pets/${petId}`, { name: `${MARK} IV` })
    ])
    await release()
    await breakMessages(url)
    await own('POST', '/messages', { message: MARK })
    await own('POST', '/messages', { message: MARK }, { 'idempotency-key': `${MARK}2` })
    await own('GET', '/messages')
    await own('GET', `/messages/${messageId}`)

    const { paths } = JSON.parse((await ask('GET', '/openapi.json')).text) as { paths: Record<string, object> }
    service.signal('SIGTERM')
    await service.ended()
    const lines = service
      .output()
      .split('\n')
      .filter((line) => line !== '')
    const requests = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request')
    for (const [path, operations] of Object.entries(paths)) {
      const route = path.replace(/\{(\w+)\}/g, ':$1')
      // The store has no attempt, because its service does not deliver.
      if (route.endsWith('/:attemptId')) continue
      for (const method of Object.keys(operations)) {
        const line = { method: method.toUpperCase(), route }
        t.ok(
          requests.some(({ method, route, status }) =>
            method === line.method && route === line.route && String(status).startsWith('2')),
          `${method} ${path} was requested`
        )
      }
    }
    for (const status of [200, 201, 400, 401, 404, 405, 409, 412, 413, 414, 422, 500, 503]) { t.ok(statuses.has(status), `the service sent a ${status}`) }
    t.ok(lines.length > 45, `${lines.length} lines were logged`)
    t.ok(
      lines.some((line) => line.includes('"level":50')),
      'the failures were logged'
    )
    t.ok(
      lines.some((line) => line.includes('"requestId":"broken-escape"')),
      'and a path that the router cannot decode'
    )
    t.ok(
      lines.some((line) => line.includes('connection rejected')),
      'and bytes that are not HTTP'
    )
    const prefix = apiKey.slice(4, 12)
    const address = '127.0.0.1'
    const expected = { method: 'GET', route: '/pets/:petId', path: `/pets/${petId}`, status: 200, key: prefix, address }
    t.match(requests.find(({ path, method }) => path === `/pets/${petId}` && method === 'GET'), {
      ...expected, account: Number
    })
    t.match(requests.find(({ status }) => status === 412), { code: 'precondition_failed', key: prefix })
    t.match(requests.filter(({ status }) => status === 401).map(({ code, key }) => ({ code, key })), [
      { code: 'unauthorized', key: key.prefix }, { code: 'unauthorized', key: undefined }
    ], 'a revoked key, and what is not a key')
    t.ok(requests.some(({ path }) => path === '/pets/psk_[hidden]'))
    t.match(lines.filter((line) => /"msg":"stop/.test(line)).map((line) => JSON.parse(line)), [
      { msg: 'stopping', signal: 'SIGTERM' }, { msg: 'stopped' }
    ])
    for (const secret of secrets) {
      t.same(
        lines.filter((line) => line.includes(secret)),
        [],
        `no line contains ${secret.slice(0, 8)}…`
      )
    }
    t.same(
      lines.filter((line) => /authorization|bearer /i.test(line)),
      []
    )
  }
)

t.test('a request that no service could answer leaves no error in the log', async (t) => {
  const service = await startService({ DATABASE_URL: await freshDatabase(t), LOG_LEVEL: 'info' })
  t.teardown(async () => { await service.kill() })
  const head = 'POST /accounts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n'
  const answer = await sendBytes(service.port, `${head}Content-Type: application/json\r\n\r\n0\r\n\r\n`)
  t.equal(answer?.status, 501)
  service.signal('SIGTERM')
  await service.ended()
  t.match(service.output(), /"status":501/)
  t.notMatch(service.output(), /"level":50/)
})

/** Makes statements about messages fail, with their values in the error. */
async function breakMessages (url: string): Promise<void> {
  const sql = 'ALTER TABLE messages RENAME COLUMN message TO moved'
  if (url.startsWith('file:')) {
    const connection = await openConnection(url)
    await untilUnlocked(60_000, () => { connection.runScript(sql) }) // waits for the writes of the service
    return connection.close()
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(sql)
  await client.end()
}
