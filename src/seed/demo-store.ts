import { runWithin } from '../database/unit-of-work/run-within.ts'
import type { Write } from '../database/unit-of-work/write.ts'
import type { FastifyInstance } from 'fastify'
import { timeText } from '../database/account-clocks.ts'
import { createCredential } from '../accounts/api-key.ts'
import { createAccount, createApiKey, MAX_API_KEYS } from '../accounts/commands.ts'
import { ApiKeyLimitReached } from '../accounts/errors.ts'
import { printable } from '../monitoring/printable.ts'
import { ANIMALS } from '../pets/sample-data.ts'
import { createCategory } from '../categories/commands.ts'
import type { Command } from '../database/group-commit/command.ts'
import { mergeChanges, type Changes, type CommandSuccess, type NewEvent } from '../database/unit-of-work/success.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { StorageLimitReached } from '../errors.ts'
import { apiKeys } from '../generated/tables.ts'
import { updateInventory } from '../inventory/commands.ts'
import { HASH_LENGTH, type EndedRequest } from '../journal/batches.ts'
import { putJournal, recordRequests } from '../journal/commands.ts'
import { createFault } from '../lab/fault-commands.ts'
import type { NewFault } from '../lab/schemas.ts'
import { createSnapshot } from '../lab/snapshot-commands.ts'
import { createMessage } from '../messages/commands.ts'
import { placeOrder } from '../orders/commands.ts'
import { createPet, updatePet } from '../pets/commands.ts'
import { createWebhook, webhookSecret } from '../webhooks/commands.ts'

/**
 * Records of the demo store that the examples of the OpenAPI document name. Tools send the examples: a category without
 * pets can be deleted, and webhooks that are disabled call no receiver.
 */
const EMPTY_CATEGORY = { name: 'Reptiles', description: 'Cold-blooded, warm-hearted' }
const MESSAGE = { id: 'msg_0000000001k7c2q9x4v0ayzr3m', message: { message: 'Hello' } }
const WEBHOOK = { url: 'https://example.com/hooks/petstore', events: ['message.created', 'message.delivered'] }

/**
 * What the examples of the lab name: a snapshot that brings the store back, and a fault of an operation that few call,
 * which first lets as many calls pass as a fault can.
 */
const SNAPSHOT = { label: 'The demo store as it was opened' }
const FAULT: NewFault = {
  operation: 'rotateWebhookSecret', effect: { type: 'delay', ms: 1000 }, after: 1_000_000
}

/** A journal with a request, as if the store had read its pets. */
const KEEP = 1_000
const REQUEST = { operation: 'listPets', method: 'GET', path: '/pets', keyId: 1, run: 'demo', status: 200 } as const

/** The orders of the demo store. */
const ORDERS: Array<[pet: string, quantity: number, complete: boolean]> = [
  ['Nemo', 6, true], ['Kiwi', 2, true], ['Rex', 1, false], ['Neon', 20, false], ['Minka', 1, true],
  ['Nibbles', 2, false], ['Felix', 2, false]
]

const NAME = 'Demo store'

/** Returns the text to print once the service listens on `origin`. */
type Greeting = (origin: string) => string

/**
 * Creates a small store in an empty database with the same commands as HTTP. They run in one transaction, so a killed
 * start leaves the whole store or nothing. Every start issues a new key until one is used, because a killed start may
 * not have printed its key. At the maximum, it takes the place of the oldest.
 *
 * @returns a text with a key, its page and a request that works when pasted; or how to get a key, if the database has
 *   another account, a key of the demo store was used, or the store is at a limit
 */
export async function openDemo (app: FastifyInstance): Promise<Greeting> {
  const { commit } = app
  const [first, second] = await findAccounts(app)
  if (second !== undefined) return () => OTHER_STORES
  if (first === undefined) {
    try {
      const { record } = await commit(openStore, {}, { account: null })
      return greet(app, record)
    } catch (error) {
      // Of processes that start at the same time, one opens the store: its message has a fixed id, which is unique.
      if ((await findAccounts(app)).length === 0) throw error
      return await openDemo(app)
    }
  }
  const isUsed = first.apiKeys.some(({ lastUsedAt }) => lastUsedAt !== null)
  const id = Number(first.id)
  if (first.name !== NAME || isUsed) return () => describeStore(id, first.name)
  try {
    const { record } = await commit(issueKey, { key: {}, credential: createCredential() }, { account: id })
    return greet(app, record)
  } catch (error) {
    if (!(error instanceof ApiKeyLimitReached || error instanceof StorageLimitReached)) throw error
    return () => describeStore(id, first.name)
  }
}

/** Finds the first two accounts, which is enough to decide whether there is a demo store or another one. */
async function findAccounts ({ database }: FastifyInstance) {
  return await database.prisma.account.findMany({
    where: { deletedAt: null }, take: 2, select: { id: true, name: true, apiKeys: { select: { lastUsedAt: true } } }
  })
}

function greet ({ basePath }: FastifyInstance, { apiKey }: { apiKey: string }): Greeting {
  return (origin) => `
The demo store is ready. See it in a browser:

  ${origin}${basePath}/#key=${apiKey}

Its API key is not shown again:

  ${apiKey}

Try it:

  curl -H 'Authorization: Bearer ${apiKey}' ${origin}${basePath}/pets

`
}

const OTHER_STORES = `
The database has several stores already, so no demo store was opened. To list them, and to get a key of one:

  npx --no petstore account list
  npx --no petstore key create --account <id>

`

function describeStore (id: number, name: string): string {
  return `
The database has a store already: ${printable(JSON.stringify(name))}, account ${id}. To get another API key:

  npx --no petstore key create --account ${id}

`
}

/** Creates a key, after it has deleted the oldest unused ones if there are too many. Those with a label stay. */
const issueKey: typeof createApiKey = {
  ...createApiKey,
  name: 'issueDemoKey',
  decide (input, rows) {
    const keys = rows.all(apiKeys)
    const excess = Math.max(0, keys.length + 1 - MAX_API_KEYS)
    const replaced = keys.filter(({ label, lastUsedAt }) => label === null && lastUsedAt === null)
      .toSorted((a, b) => a.id - b.id).slice(0, excess)
    for (const key of replaced) rows.delete(apiKeys, key)
    return { ...createApiKey.decide(input, rows), changes: { apiKeys: replaced.map(({ id }) => id) } }
  }
}

const openStore: Command<object, { apiKey: string }> = {
  name: 'openDemo',
  run: fill
}

async function fill (tx: Transaction): Promise<CommandSuccess<{ apiKey: string }>> {
  const input = { account: { name: NAME }, credential: createCredential() }
  const [opened] = await runWithin(tx, null, createAccount, [input])
  const { id: account } = opened!.record
  const events: NewEvent[] = []
  const changes: Changes = {}

  async function make<Input, Record> (
    command: Write<Input, Record> | Command<Input, Record>, inputs: Input[]
  ): Promise<Record[]> {
    const successes = await runWithin(tx, account, command, inputs)
    events.push(...successes.flatMap(({ events = [] }) => events.map((event) => ({ ...event, account }))))
    for (const success of successes) mergeChanges(changes, success.changes)
    return successes.map(({ record }) => record)
  }

  const categories = await make(createCategory, [...ANIMALS, EMPTY_CATEGORY].map(({ name, description }) => (
    { category: { name, description } }
  )))
  const stocked = ANIMALS.flatMap(({ pets }, i) => pets.map(([name, units]) => (
    { pet: { name, categoryId: categories[i]!.id }, units }
  )))
  const pets = await make(createPet, stocked.map(({ pet }) => ({ pet })))
  const ids = new Map(pets.map(({ name, id }) => [name, id]))
  await make(updateInventory, stocked.map(({ pet, units }) => (
    { petId: ids.get(pet.name)!, quantity: units, conditions: {} }
  )))
  await make(placeOrder, ORDERS.map(([pet, quantity, complete]) => (
    { order: { petId: ids.get(pet)!, quantity, complete } }
  )))
  await make(updatePet, [{ petId: ids.get('Luna')!, patch: { status: 'pending' }, conditions: {} }])
  await make(createMessage, [{ ...MESSAGE, secret: '' }])
  await make(createWebhook, [1, 2].map(() => ({ webhook: { ...WEBHOOK, enabled: false }, secret: webhookSecret() })))
  await make(createSnapshot, [{ account, snapshot: SNAPSHOT }])
  await make(createFault, [{ account, fault: FAULT }])
  await make(putJournal, [{ account, keep: KEEP, conditions: {} }])
  await make(recordRequests, [{ account, requests: [recordedRead(Date.parse(tx.startedAt))], dropped: 0 }])
  return { record: opened!.record, events, changes }
}

function recordedRead (now: number): EndedRequest {
  const request = { ...REQUEST, outcome: 'answered' } as const
  const record = { at: timeText(now), durationMs: 1, ...request, fields: [], answerFields: [], answer: '[]' }
  const facts = { ...request, startedMs: now, endedMs: now }
  return { text: JSON.stringify(record), facts, attemptHash: '0'.repeat(HASH_LENGTH) }
}
