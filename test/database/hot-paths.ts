import { randomUUID } from 'node:crypto'
import { eraseRows, findDeletedAccounts } from '../../src/accounts/erasure.ts'
import { findExpiredAccounts } from '../../src/accounts/expiry.ts'
import { findAccount, findApiKey, findKey, findKeyById } from '../../src/accounts/queries.ts'
import {
  deleteExpiredIdempotencyRecords, deleteExpiredRecordsOfAccount
} from '../../src/database/group-commit/idempotency-records.ts'
import type { Read } from '../../src/database/reads/query.ts'
import { pageQuery, type ListDefinition } from '../../src/database/sql/keyset-pagination.ts'
import { claimDeliveries } from '../../src/deliveries/claim.ts'
import { deleteSettledDeliveries } from '../../src/deliveries/cleanup.ts'
import { completeDeliveries } from '../../src/deliveries/complete.ts'
import { endDeliveries } from '../../src/deliveries/end-unsendable.ts'
import { findDueWork } from '../../src/deliveries/find-due.ts'
import { listEvents, streamEvents } from '../../src/events/queries.ts'
import { resendEvents } from '../../src/webhooks/resend-command.ts'
import { deleteExpiredEvents } from '../../src/events/retention.ts'
import { findInventoryItem } from '../../src/inventory/queries.ts'
import { HASH_LENGTH } from '../../src/journal/batches.ts'
import { putJournal, recordRequests } from '../../src/journal/commands.ts'
import { batchReader, findRequest } from '../../src/journal/queries.ts'
import {
  findActiveStates, findChanges, findClockOffset, findFault, findMovedClocks, findSnapshot, findStateOf
} from '../../src/lab/queries.ts'
import { resetStore } from '../../src/lab/reset-command.ts'
import { createSnapshot, deleteSnapshot, restoreSnapshot } from '../../src/lab/snapshot-commands.ts'
import { dropLostDeliveries } from '../../src/lab/store-rows.ts'
import { deliverUnsubscribedMessages } from '../../src/messages/delivery-status.ts'
import { findMessage } from '../../src/messages/queries.ts'
import { findOrder } from '../../src/orders/queries.ts'
import { findPet } from '../../src/pets/queries.ts'
import type { Answer, Client, TestApp } from '../support/app.ts'
import { loadFixtures } from '../support/fixture.ts'
import { newCategory, newOrder, newWebhook, stocked } from '../support/fixtures.ts'
import { inOneGroup } from '../support/groups.ts'

/** Actions of the service by name, which run the statements of its hot paths. */
export type Actions = Record<string, () => Promise<unknown>>

/** The account whose rows the statements read and write, and records of it. */
export interface Owner {
  account: number
  /** Most of its pets are of this category. */
  category: number
  /** Few are of this one. */
  rareCategory: number
  /** A pet with thousands of orders. */
  pet: number
  /** Thousands of its deliveries wait. */
  webhook: number
  /** Another account, with a small store and thousands of deliveries, and a snapshot of it. */
  busy: { account: number, snapshot: number }
}

/** A webhook that does not exist, but deliveries of it are left. */
export const DELETED_WEBHOOK = 900_000

export async function createOwner (ada: Client, busy: Client): Promise<Owner> {
  const pet = await stocked(ada, 5)
  await newOrder(ada, pet)
  const { body: [{ categoryId: category }] } = await ada.get(`/pets?id=${pet}`)
  await newOrder(busy, await stocked(busy, 5))
  for (let i = 0; i < 20; i++) await expect(201, busy.post('/messages', { message: 'Hi' }))
  const { id: snapshot } = await expect(201, busy.post('/lab/snapshots', {}))
  return {
    account: ada.account!,
    category,
    rareCategory: await newCategory(ada),
    pet,
    webhook: await newWebhook(ada),
    busy: { account: busy.account!, snapshot }
  }
}

/** Returns all actions. @param erased an account to erase */
export async function hotPaths (service: TestApp, ada: Client, owner: Owner, erased: number): Promise<Actions> {
  return {
    ...reads(service, owner),
    ...await lists(service, owner),
    ...writes(service, ada, owner),
    ...groups(service),
    ...backgroundWork(service, owner, erased)
  }
}

const NO_ACCOUNT = { account: null }
const HOUR_MS = 3_600_000
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

/** Runs a read as a statement of its own, and as one that serves several requests. */
async function inEachForm (read: Read, find: (read: Read) => Promise<unknown>): Promise<void> {
  await Promise.all([find(read), find(read), find(read)])
}

/** Returns reads of the large account's records, of its feed, and of the queues and polls. */
function reads ({ app: { clocks, read } }: TestApp, { account, pet }: Owner): Actions {
  const finds: Record<string, (read: Read) => Promise<unknown>> = {
    'find a key by its hash': async (read) => await findKey(read, 'unknown'),
    'find a key by its id': async (read) => await findKeyById(read, 1),
    'find a key of an account': async (read) => await findApiKey(read, account, 1),
    'find an account': async (read) => await findAccount(read, account),
    'find a pet': async (read) => await findPet(read, account, pet),
    'find an order': async (read) => await findOrder(read, account, 1),
    'find a count': async (read) => await findInventoryItem(read, account, pet),
    'find a message': async (read) => await findMessage(read, account, 'large1'),
    'find a fault': async (read) => await findFault(read, account, 1),
    'find a snapshot': async (read) => await findSnapshot(read, account, 1),
    'find a recorded request': async (read) => await findRequest(batchReader(read, account), 1),
    'find a clock': async (read) => await findClockOffset(read, account),
    'read the first events': async (read) => await listEvents(read, account, 0, 20),
    'read later events': async (read) => await listEvents(read, account, 10_000, 20),
    'stream events': async (read) => await streamEvents(read, account, 10_000),
    'poll for due deliveries': async (read) => await findDueWork(read, clocks, 'worker', 0),
    'read the moved clocks': async (read) => await findMovedClocks(read),
    'poll the lab': async (read) => await findActiveStates(read),
    'poll changes of the lab': async (read) => await findChanges(read, ago(15_000)),
    'read the lab of an account': async (read) => await findStateOf(read, account),
    'search deleted accounts': async (read) => await findDeletedAccounts(read, Date.now()),
    'search expired accounts': async (read) => await findExpiredAccounts(read, Date.now())
  }
  return Object.fromEntries(Object.entries(finds).map(([name, find]) =>
    [name, async () => { await inEachForm(read, find) }]))
}

/** Returns reads of every list of the large account, with each combination of filters, in both orders. */
async function lists ({ app: { database, read } }: TestApp, owner: Owner): Promise<Actions> {
  const { account, category, rareCategory, pet } = owner
  const newest = await database.prisma.pet.findMany({
    where: { accountId: account }, orderBy: { id: 'desc' }, take: 20, select: { id: true }
  })
  const ids = newest.map(({ id }) => Number(id))
  const samples = {
    status: ['available', 'sold'], categoryId: [category, rareCategory], complete: [false, true], openAt: [ago(0)]
  }
  const actions: Actions = {}
  for (const { definition, samples: own = {} } of (await loadFixtures()).flatMap(({ list }) => list ?? [])) {
    const others = Object.entries(own).filter(([name, value]) => typeof value !== typeof (samples as any)[name]?.[0])
    const values = {
      ...samples,
      ...Object.fromEntries(others.map(([name, value]) => [name, [value]])),
      id: [ids],
      petId: [definition.filters['petId']?.type === 'json' ? ids : pet]
    }
    for (const filters of combinations(definition, values)) {
      for (const descending of [false, true]) {
        for (const after of [undefined, pet + 10_000]) {
          const name = `list ${definition.name} ${JSON.stringify(filters)} ${descending ? 'down' : 'up'} after ${after}`
          const page = pageQuery(definition, { limit: 20, descending, after, filters }, account)
          actions[name] = async () => { await inEachForm(read, async (read) => await read(...page)) }
        }
      }
    }
  }
  return actions
}

/** Returns all combinations of a list's filters, each with all its values. */
function combinations (
  { filters }: ListDefinition, values: Record<string, unknown[]>
): Array<Record<string, unknown>> {
  return Object.keys(filters).reduce<Array<Record<string, unknown>>>((all, name) =>
    [...all, ...all.flatMap((filters) => values[name]!.map((value) => ({ ...filters, [name]: value })))], [{}])
}

async function expect (status: number, answer: Promise<Answer>): Promise<any> {
  const { status: actual, body, text } = await answer
  if (actual !== status) throw new Error(`answered ${actual}: ${text}`)
  return body
}

/** Returns writes of the large account by HTTP, one after the other, each with an Idempotency-Key. */
function writes ({ nobody }: TestApp, ada: Client, { category, rareCategory, pet }: Owner): Actions {
  const keyed = (): Record<string, string> => ({ 'idempotency-key': randomUUID() })
  const create = async (path: string, body: object): Promise<number> =>
    (await expect(201, ada.post(path, body, keyed()))).id
  const change = async (path: string, body: object): Promise<any> => await expect(200, ada.patch(path, body, keyed()))
  const remove = async (path: string): Promise<any> => await expect(204, ada.delete(path, keyed()))
  return {
    'create, change and delete a pet': async () => {
      const id = await create('/pets', { name: 'Rex', categoryId: category })
      await change(`/pets/${id}`, { name: 'Max', categoryId: rareCategory, status: 'pending' })
      await remove(`/pets/${id}`)
    },
    'replay a write': async () => {
      const headers = keyed()
      for (let i = 0; i < 2; i++) await expect(201, ada.post('/pets', { name: 'Rex', categoryId: category }, headers))
    },
    'refuse a write': async () => await expect(409, ada.delete(`/pets/${pet}`, keyed())),
    'count, order, ship and cancel': async () => {
      const petId = await create('/pets', { name: 'Rex', categoryId: category })
      await change(`/inventory/${petId}`, { quantity: 5 })
      await change(`/inventory/${petId}`, { quantity: 6 })
      await create('/store/orders', { petId, quantity: 6 })
      await change(`/inventory/${petId}`, { quantity: 6 })
      const [shipped, cancelled] = [await create('/store/orders', { petId }), await create('/store/orders', { petId })]
      await change(`/store/orders/${shipped}`, { complete: true })
      await remove(`/store/orders/${cancelled}`)
    },
    'count and order the pet with many orders': async () => {
      await change(`/inventory/${pet}`, { quantity: 1 + Math.floor(Math.random() * 1e9) })
      const id = await create('/store/orders', { petId: pet })
      await change(`/store/orders/${id}`, { complete: true })
    },
    'create a message': async () => await create('/messages', { message: 'Hi' }),
    'create, change and delete a category': async () => {
      const id = await create('/categories', { name: 'Dogs' })
      await change(`/categories/${id}`, { name: 'Cats' })
      await remove(`/categories/${id}`)
      await expect(409, ada.delete(`/categories/${category}`, keyed()))
    },
    'create and revoke a key': async () => {
      const { id } = await expect(201, ada.post('/account/keys', {}))
      await remove(`/account/keys/${id}`)
    },
    'create, change, test and delete a webhook': async () => {
      const { id } = await expect(201, ada.post('/webhooks', { url: 'https://example.com/', events: ['category.created'] }))
      await change(`/webhooks/${id}`, { enabled: false })
      await expect(200, ada.post(`/webhooks/${id}/rotate`, undefined))
      await expect(202, ada.post(`/webhooks/${id}/test`, undefined, keyed()))
      await remove(`/webhooks/${id}`)
    },
    'create, hit and delete faults': async () => {
      const fault = { operation: 'listCategories', effect: { type: 'refuse', status: 503 } }
      await create('/lab/faults', fault)
      await expect(503, ada.get('/categories'))
      await remove(`/lab/faults/${await create('/lab/faults', fault)}`)
    },
    'sign up, move the clock, and delete faults and the account': async () => {
      const { apiKey } = await expect(201, nobody.post('/accounts', { name: 'A store' }))
      const headers = { authorization: `Bearer ${apiKey}` }
      await expect(200, nobody.post('/lab/clock/advance', { seconds: 60 }, headers))
      await expect(204, nobody.delete('/lab/faults', headers))
      await expect(204, nobody.delete('/account', headers))
    },
    'check readiness': async () => await expect(200, nobody.get('/readyz'))
  }
}

/** Returns writes without an Idempotency-Key, alone and several in a group. */
function groups (service: TestApp): Actions {
  return {
    'write in a group': async () => {
      const { apiKey } = await expect(201, service.nobody.post('/accounts', { name: 'A store' }))
      const client = service.withKey(apiKey)
      const pets = [await stocked(client, 9), await stocked(client, 9)]
      const { body: [{ categoryId }] } = await client.get(`/pets?id=${pets[0]}`)
      const orders = [await newOrder(client, pets[0]!), await newOrder(client, pets[1]!)]
      await inOneGroup<unknown>(service.app, [
        ...pets.map((petId) => async () => await newOrder(client, petId)),
        ...pets.map(() => async () => await expect(201, client.post('/messages', { message: 'Hi' }))),
        ...pets.map(() => async () => await expect(201, client.post('/pets', { name: 'Rex', categoryId }))),
        ...orders.map((id) => async () => await expect(204, client.delete(`/store/orders/${id}`)))
      ])
    }
  }
}

/** Returns the steps of the background work, each as often as it needs for one transaction of each kind. */
function backgroundWork (
  { app: { commit, database } }: TestApp, { account, webhook, busy }: Owner, erased: number
): Actions {
  const input = { account, worker: randomUUID(), limit: 8 }
  return {
    'record requests': async () => {
      await commit(putJournal, { account, keep: 70, conditions: {} }, NO_ACCOUNT)
      const known = { operation: 'listPets', method: 'GET', path: '/pets', keyId: 1, outcome: 'answered' } as const
      const facts = { ...known, startedMs: 1, endedMs: 2 }
      const requests = Array.from({ length: 100 }, () => ({ text: '{}', facts, attemptHash: 'k'.repeat(HASH_LENGTH) }))
      // The second batch is not full, and the first one is not needed any more.
      for (let i = 0; i < 2; i++) await commit(recordRequests, { account, requests, dropped: 0 }, NO_ACCOUNT)
    },
    'claim and complete deliveries': async () => {
      const { record: { claimed } } = await commit(claimDeliveries, { ...input, webhookId: webhook }, NO_ACCOUNT)
      const attempt = { at: ago(0), eventId: 1, attempt: 1, status: 200, durationMs: 1 }
      await Promise.all(claimed.map(async ({ id, lease, message, url }) => await commit(completeDeliveries, {
        id, account, webhookId: webhook, lease, message, url, result: 'accepted', attempt
      }, NO_ACCOUNT)))
      // Another worker has none in flight.
      await commit(claimDeliveries, { ...input, worker: randomUUID(), webhookId: webhook }, NO_ACCOUNT)
      await database.prisma.webhook.update({ where: { id: webhook }, data: { enabled: false } })
      await commit(claimDeliveries, { ...input, webhookId: webhook }, NO_ACCOUNT)
      await database.prisma.webhook.update({ where: { id: webhook }, data: { enabled: true } })
    },
    'drop deliveries of a deleted webhook': async () =>
      await commit(endDeliveries, { account, webhookId: DELETED_WEBHOOK }, NO_ACCOUNT),
    'reset and restore a store, take and delete a snapshot': async () => {
      const ofBusy = { account: busy.account, conditions: {} }
      await commit(resetStore, { ...ofBusy, reset: {} }, NO_ACCOUNT)
      await commit(restoreSnapshot, { ...ofBusy, snapshotId: busy.snapshot }, NO_ACCOUNT)
      const { record } = await commit(createSnapshot, { ...ofBusy, snapshot: {} }, NO_ACCOUNT)
      await commit(deleteSnapshot, { ...ofBusy, snapshotId: record.id }, NO_ACCOUNT)
    },
    'drop deliveries of messages that are gone': async () =>
      await commit(dropLostDeliveries, { account: busy.account, after: 0 }, NO_ACCOUNT),
    'deliver messages without webhooks': async () =>
      await commit(deliverUnsubscribedMessages, { upTo: Number.MAX_SAFE_INTEGER }, NO_ACCOUNT),
    'delete finished deliveries': async () => {
      await commit(deleteSettledDeliveries, { state: 'delivered', before: Date.now() }, NO_ACCOUNT)
    },
    'send events again': async () => {
      const { lastEventId } = await database.prisma.account.findUniqueOrThrow({ where: { id: account } })
      const [from, to] = [Math.max(1, Number(lastEventId) - 299), Number(lastEventId)]
      const input = { account, webhookId: webhook, conditions: {}, selection: { from, to } }
      await commit(resendEvents, input, { account })
    },
    'delete expired idempotency records': async () => await commit(deleteExpiredIdempotencyRecords, {}, NO_ACCOUNT),
    'delete expired idempotency records of an account': async () =>
      await commit(deleteExpiredRecordsOfAccount, { account, after: '' }, NO_ACCOUNT),
    'delete expired events': async () => {
      const before = new Date(Date.now() + HOUR_MS).toISOString()
      await commit(deleteExpiredEvents, { after: account - 1, before, only: account }, NO_ACCOUNT)
      await commit(deleteExpiredEvents, { after: account, before: ago(HOUR_MS) }, NO_ACCOUNT)
    },
    'erase an account': async () => {
      await database.prisma.account.update({ where: { id: erased }, data: { deletedAt: new Date() } })
      let position = { tables: 0, after: 0 }
      for (;;) {
        const { record } = await commit(eraseRows, { account: erased, position }, NO_ACCOUNT)
        if (record.state === 'erased') return
        if (record.state !== 'erasing') throw new Error(record.state)
        position = record.position
      }
    }
  }
}
