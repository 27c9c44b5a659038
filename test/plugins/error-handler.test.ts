import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { startApp, type Answer, type TestApp } from '../support/app.ts'
import { readerOf, assertError } from '../support/checks.ts'
import { contractOf, errorCodes } from '../support/contract.ts'
import { database } from '../support/database.ts'
import { loadFixtures, mergeTables, type RaisedError, type RaisingApp } from '../support/fixture.ts'
import { sendBytes, watchConnections } from '../support/socket.ts'

/** Makes one request for each code that no resource has for itself. */
const COMMON: Record<string, RaisedError> = {
  invalid_json: {
    raise: async (_app, client) =>
      await client.request('POST', '/messages', { headers: { 'content-type': 'application/json' }, body: '{' })
  },
  invalid_content_type: { raise: async (_app, client) => await client.request('POST', '/messages', { body: '{}' }) },
  validation_failed: { raise: async (_app, client) => await client.post('/messages', {}) },
  bad_request: { raise: async ({ nobody }) => await nobody.get('/%') },
  unauthorized: { raise: async ({ nobody }) => await nobody.get('/pets') },
  read_only_key: {
    raise: async ({ withKey }, client) => await (await readerOf(client, withKey)).post('/messages', {})
  },
  route_not_found: { raise: async ({ nobody }) => await nobody.get('/nothing') },
  method_not_allowed: { raise: async ({ nobody }) => await nobody.request('PUT', '/pets') },
  request_timeout: {
    raise: async (app) =>
      await bare(await sibling(app, { REQUEST_TIMEOUT_MS: '200' }), 'GET /pets HTTP/1.1\r\n')
  },
  precondition_failed: { raise: async (_app, client) => await client.delete('/account', { 'if-match': '"0"' }) },
  payload_too_large: {
    settings: { BODY_LIMIT: '1024' },
    raise: async (_app, client) => await client.post('/messages', { message: 'x'.repeat(2000) })
  },
  uri_too_long: { raise: async ({ nobody }) => await nobody.get(`/${'x'.repeat(9000)}`) },
  headers_too_large: {
    raise: async (app) => await bare(app, `GET /pets HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(17_000)}\r\n\r\n`)
  },
  idempotency_key_reused: {
    raise: async (_app, client) => {
      await client.post('/messages', { message: 'a' }, { 'idempotency-key': 'k' })
      return await client.post('/messages', { message: 'b' }, { 'idempotency-key': 'k' })
    }
  },
  rate_limited: {
    settings: { RATE_LIMIT_PER_ACCOUNT: '1' },
    raise: async (_app, client) => {
      await client.get('/pets')
      return await client.get('/pets')
    }
  },
  not_implemented: { raise: async (app) => await bare(app, 'FETCH /pets HTTP/1.1\r\nHost: x\r\n\r\n') },
  internal_error: {
    settings: {},
    raise: async ({ app }, client) => {
      await app.database.prisma.$executeRawUnsafe('DROP TABLE messages')
      return await client.post('/messages', { message: 'Hello' })
    }
  },
  overloaded: {
    settings: { QUEUE_LIMIT: '1' },
    raise: async ({ config }, client) => {
      await client.get('/account')
      let answers: Array<Promise<Answer>> = []
      const first = await whileLocked(config.DATABASE_URL, async () => {
        answers = Array.from({ length: 10 }, async () => await client.post('/categories', { name: 'Dogs' }))
        return await Promise.race(answers)
      })
      await Promise.all(answers)
      return first
    }
  },
  shutting_down: {
    settings: {},
    async raise ({ app, port }) {
      // Its first line has arrived, so the connection is not idle. The rest arrives after the stop began.
      const heardFrom = watchConnections(app.server)
      let closed: Promise<void> | undefined
      const rest = heardFrom(1).then(async () => {
        closed = app.close()
        return await sleep(200, 'Host: x\r\n\r\n')
      })
      const answer = whole(await sendBytes(port, 'GET /pets HTTP/1.1\r\n', rest))
      await closed
      return answer
    }
  },
  database_unavailable: {
    raise: async (app, { key }) => {
      const client = (await sibling(app, { REQUEST_TIMEOUT_MS: '1000' })).withKey(key!)
      await client.get('/account')
      return await whileLocked(app.config.DATABASE_URL, async () => await client.post('/categories', { name: 'Dogs' }))
    }
  }
}

const ownErrors = Object.entries(mergeTables((await loadFixtures()).map(({ errors }) => errors)))

const CASES: Record<string, RaisedError> = {
  ...COMMON,
  ...Object.fromEntries(ownErrors.flatMap(([code, found]) => 'raise' in found ? [[code, found] as const] : []))
}

/** Codes that no request in this file can cause, and the reasons. */
const ELSEWHERE: Record<string, string> = {
  storage_limit_reached: 'test/accounts/stored-bytes.test.ts: takes an account that stores much',
  idempotency_key_in_use:
    'test/contract/replays.test.ts: takes somebody who holds the key, and PostgreSQL, where two write at a time',
  ...Object.fromEntries(
    ownErrors.flatMap(([code, found]) => ('elsewhere' in found ? [[code, found.elsewhere] as const] : []))
  )
}

/** Starts another service on the same database. */
async function sibling ({ t, config }: RaisingApp, settings: Record<string, string>): Promise<TestApp> {
  return await startApp(t, { DATABASE_URL: config.DATABASE_URL, ...settings })
}

/** Sends bytes, and compares the answer with the document as a client of the tests does. */
async function bare ({ app, config, port }: TestApp, bytes: string): Promise<Answer> {
  const answer = whole(await sendBytes(port, bytes))
  const [method = '', path = ''] = bytes.split(' ')
  const problem = contractOf(app, config).problemOf(method, path, answer)
  if (problem !== undefined) throw new Error(problem)
  return answer
}

function whole (answer: Answer | undefined): Answer {
  if (answer === undefined) throw new Error('the socket was closed without an answer')
  return answer
}

/** Takes a lock that blocks all writes of the service, as another program might. */
async function whileLocked<T> (url: string, use: () => Promise<T>): Promise<T> {
  const other = await openDatabase({ url, pool: 2, timeout: 60_000 })
  try {
    return await other.prisma.$transaction(async (prisma) => {
      if (database === 'postgresql') await prisma.$executeRawUnsafe('LOCK TABLE categories, api_keys IN EXCLUSIVE MODE')
      return await use()
    })
  } finally {
    await other.close()
  }
}

const codes = errorCodes()

t.test('every code is covered in this file, or listed as covered elsewhere', async (t) => {
  const named = [...Object.keys(CASES), ...Object.keys(ELSEWHERE)]
  t.same(codes.map(({ code }) => code).filter((code) => !named.includes(code)), [])
  t.same(named.filter((code) => !codes.some((known) => known.code === code)), [])
})

t.test('each code is sent in the Error shape', async (t) => {
  const shared = await startApp(t)
  for (const { code, status } of codes) {
    const found = CASES[code]
    if (found === undefined) continue
    await t.test(`${status} ${code}`, async (t) => {
      const app = found.settings === undefined ? shared : await startApp(t, found.settings)
      const answer = await found.raise({ ...app, t }, await app.openAccount(), status)
      assertError(t, answer, status, code, /^["A-Za-z].*[.]$/)
      t.notMatch(
        answer.text,
        /select|insert|prisma|sqlite|postgres|node_modules|\/src\/|\n +at |%s|undefined|petstore\.db/i,
        'no SQL, path or stack'
      )
      t.match(answer.headers['request-id'], /^[\w-]+$/)
      if (status === 503 || status === 429) t.match(answer.headers['retry-after'], /^\d+$/)
    })
  }
})

t.test('the service continues after a database failure', async (t) => {
  const { app, openAccount } = await startApp(t)
  const client = await openAccount()
  await app.database.prisma.$executeRawUnsafe('ALTER TABLE categories RENAME TO elsewhere')
  for (const answer of [
    await client.get('/categories'),
    await client.post('/categories', { name: 'Dogs' }),
    await client.patch('/categories/1', { name: 'Dogs' })
  ]) {
    assertError(
      t,
      answer,
      500,
      'internal_error',
      'An internal error occurred. Quote the Request-Id when you report it.'
    )
  }
  await app.database.prisma.$executeRawUnsafe('ALTER TABLE elsewhere RENAME TO categories')
  t.equal((await client.post('/categories', { name: 'Dogs' })).status, 201)
  t.equal((await client.get('/categories')).body.length, 1)
})

t.test(
  'a write waits for a lock of another program, then fails with 503, and succeeds after its release',
  async (t) => {
    const { config, nobody, openAccount } = await startApp(t, { REQUEST_TIMEOUT_MS: '1000' })
    const client = await openAccount()
    await whileLocked(config.DATABASE_URL, async () => {
      const signUp = await nobody.post('/accounts', { name: 'A store' })
      assertError(t, signUp, 503, 'database_unavailable', /^The database did not respond in time\. Try again;/)
      t.notMatch(signUp.body.message, 'Idempotency-Key', 'which is not allowed there')
      const started = Date.now()
      const answers = await Promise.all(
        Array.from({ length: 30 }, async () => await client.post('/categories', { name: 'Dogs' }))
      )
      for (const answer of answers) assertError(t, answer, 503, 'database_unavailable', 'with its Idempotency-Key')
      t.ok(Date.now() - started < 25_000, 'sooner than one after the other')
    })
    t.equal((await client.post('/categories', { name: 'Dogs' })).status, 201)
  }
)
