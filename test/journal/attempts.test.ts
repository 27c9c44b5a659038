import { request } from 'node:http'
import t, { type Test } from 'tap'
import { bytesOfTexts } from '../../src/database/unit-of-work/stored-bytes.ts'
import { HASH_LENGTH, type EndedRequest, type StoredFacts } from '../../src/journal/batches.ts'
import { recordRequests } from '../../src/journal/commands.ts'
import { startApp, type Client } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { newFault } from '../lab/fixture.ts'
import { turnOn } from './fixture.ts'

// Attempts that are recorded in another order than that in which they began.

const { app, openAccount, port } = await startApp(t)
const { prisma } = app.database

type Times = readonly [name: string, startedMs: number, endedMs: number, retryAfterMs?: number]

function ended ([path, startedMs, endedMs, retryAfterMs]: Times, isKeyed: boolean): EndedRequest {
  const known = { operation: 'listPets', method: 'GET', path, keyId: 1, outcome: 'answered' } as const
  const record = { at: new Date(startedMs).toISOString(), durationMs: 1, ...known, fields: [], body: 'ä' }
  const facts = { ...known, startedMs, endedMs, retryAfterMs, ...isKeyed ? { idempotencyKey: 'k' } : {} }
  return { text: JSON.stringify(record), facts, attemptHash: 'k'.repeat(HASH_LENGTH) }
}

async function record (account: number, requests: EndedRequest[]): Promise<void> {
  await app.commit(recordRequests, { account, requests, dropped: 0 }, { account })
}

async function storedBytesOf (id: number): Promise<number> {
  return Number((await prisma.account.findUniqueOrThrow({ where: { id } })).storedBytes)
}

type Link = [name: string, attemptOf?: string | undefined, pauseMs?: number | undefined, askedMs?: number | undefined]

/** Returns the links of an account's attempts, in order of their names. */
async function linksOf (accountId: number): Promise<Link[]> {
  const batches = await prisma.recordedBatch.findMany({ where: { accountId } })
  const requests = batches.flatMap(({ facts }) => JSON.parse(facts) as StoredFacts[])
  const names = new Map(requests.map(({ id, path }) => [id, path]))
  return requests.map(({ path, attemptOf, pauseMs, askedMs }): Link => [path, names.get(attemptOf!), pauseMs, askedMs])
    .sort(([a], [b]) => a < b ? -1 : 1)
}

const ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] as const

t.test('attempts have the same links in whatever order they are recorded', async (t) => {
  for (const [isKeyed, attempts, links] of [
    [true, [['/a', 1_000, 2_000, 500], ['/b', 2_100, 2_200], ['/c', 90_000, 90_100]], [
      ['/a'], ['/b', '/a', 100, 500], ['/c', '/a', 87_800]
    ]],
    [false, [['/a', 1_000, 2_000, 500], ['/b', 52_000, 52_100], ['/c', 102_100, 102_200]], [
      ['/a'], ['/b', '/a', 50_000, 500], ['/c', '/a', 50_000]
    ]],
    [false, [['/a', 1_000, 2_000], ['/b', 62_001, 62_100], ['/c', 62_050, 62_060]], [
      ['/a'], ['/b'], ['/c', '/b', 0]
    ]]
  ] as Array<[boolean, Times[], Link[]]>) {
    const wanted = links.map(([name, of, pauseMs, askedMs]) => [name, of, pauseMs, askedMs])
    for (const order of ORDERS) {
      const requests = order.map((i) => ended(attempts[i]!, isKeyed))
      for (const batches of [requests.map((one) => [one]), [requests], [requests.slice(0, 2), requests.slice(2)]]) {
        const { account } = await withJournal()
        const before = await storedBytesOf(account)
        for (const batch of batches) await record(account, batch)
        t.same(await linksOf(account), wanted, `${order}, ${batches.length} batches`)
        await assertSizes(t, account, before)
      }
    }
  }
})

t.test('attempts are linked across batches', async (t) => {
  const { ada, account } = await withJournal()
  const before = await storedBytesOf(account)
  const others = Array.from({ length: 150 }, (_, i) => ({
    ...ended([`/${i}`, 1_000, 1_001], false), attemptHash: String(i).padStart(HASH_LENGTH)
  }))
  await record(account, [ended(['/b', 5_000, 6_000], true)])
  await record(account, others.slice(0, 75))
  await record(account, [ended(['/c', 7_000, 7_100], true), ...others.slice(75)])
  await record(account, [ended(['/a', 1_000, 2_000, 500], true)])
  const attempts = (await linksOf(account)).filter(([name]) => /[abc]/.test(name))
  t.same(attempts, [['/a', undefined, undefined, undefined], ['/b', '/a', 3_000, 500], ['/c', '/a', 1_000, undefined]])
  await assertSizes(t, account, before)
  t.ok(await prisma.recordedBatch.count({ where: { accountId: account } }) >= 3)

  const paths = async (query: string): Promise<string[]> =>
    (await ada.get(`/lab/requests?${query}`)).body.map(({ path }: { path: string }) => path)
  t.same(await paths('after=63&limit=2'), ['/62', '/63'], 'of two batches')
  t.same(await paths('after=152'), ['/a'])
  await turnOn(ada, 70)
  t.match((await ada.get('/lab/journal')).body, { requests: 70 })
  t.same(await paths('limit=1'), ['/81'])
  t.equal((await ada.get('/lab/requests/83')).status, 404, 'a batch can have requests that the journal no longer has')
  await assertSizes(t, account, before)
})

t.test('an attempt that began before a hundred recorded ones is linked to none', async (t) => {
  const { account } = await withJournal()
  const times = (i: number): Times => [`/${String(i).padStart(3, '0')}`, 1_000 + i * 10, 1_005 + i * 10]
  await record(account, Array.from({ length: 100 }, (_, i) => ended(times(i + 2), true)))
  await record(account, [0, 1, 102].map((i) => ended(times(i), true)))
  const links = Array.from({ length: 100 }, (_, i) => [times(i + 3)[0], '/002', 5, undefined])
  const unlinked = ['/000', '/001', '/002'].map((name) => [name, undefined, undefined, undefined])
  t.same(await linksOf(account), [...unlinked, ...links])
})

t.test('a first attempt whose response is delayed is recorded as the first', async (t) => {
  const { ada } = await withJournal()
  await newFault(ada, { operation: 'createMessage', effect: { type: 'delay', ms: 60_000 } })
  const headers = { authorization: `Bearer ${ada.key}`, 'content-type': 'application/json', 'idempotency-key': 'k' }
  const slow = request({ port, host: '127.0.0.1', method: 'POST', path: '/messages', agent: false, headers })
  slow.on('error', () => {}).end('{"message":"a"}')
  await eventually(async () => (await ada.get('/messages')).body.length === 1)
  t.equal((await ada.post('/messages', { message: 'a' }, { 'idempotency-key': 'k' })).status, 201)
  const attempts = async (): Promise<any[]> => (await ada.get('/lab/requests?limit=100&operation=createMessage')).body
  const [alone] = await attempts()
  t.match(alone, { replayed: true, attemptOf: undefined })
  const { headers: { etag } } = await ada.get(`/lab/requests/${alone.id}`)
  slow.destroy()
  await eventually(async () => (await attempts()).length === 2)
  const [second, first] = await attempts()
  t.match(first, { outcome: 'left', attemptOf: undefined, pauseMs: undefined })
  t.match(second, { id: alone.id, attemptOf: first.id, pauseMs: 0 })
  const again = await ada.get(`/lab/requests/${second.id}`, { 'if-none-match': etag! })
  t.same([again.status, again.body], [200, second], 'it has another entity tag')
  const check = { match: { operation: 'createMessage' }, times: { exactly: 2 }, minPauseMs: 1 }
  t.match((await ada.post('/lab/requests/verify', check)).body, {
    requests: [first.id, second.id], differences: [{ id: second.id, text: /^The second attempt came after 0 ms/ }]
  })
})

/** Asserts that the batches of an account, its journal and the account itself have the sizes of their texts. */
async function assertSizes (t: Test, accountId: number, before: number): Promise<void> {
  const rows = await prisma.recordedBatch.findMany({ where: { accountId } })
  const sizes = rows.map(({ hashes, facts, data }) => bytesOfTexts(hashes, facts, data))
  t.same(rows.map(({ bytes }) => Number(bytes)), sizes)
  const total = sizes.reduce((sum, size) => sum + size)
  const journal = await prisma.journal.findUniqueOrThrow({ where: { accountId } })
  t.same([await storedBytesOf(accountId) - before, Number(journal.bytes)], [total, total])
}

async function withJournal (): Promise<{ ada: Client, account: number }> {
  const ada = await openAccount()
  await turnOn(ada)
  return { ada, account: ada.account! }
}
