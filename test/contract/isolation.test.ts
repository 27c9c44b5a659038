import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { expandComponents } from '../support/expand-components.ts'
import { createRecords, loadFixtures, recordsOf, type CreatedIds } from '../support/fixture.ts'

/**
 * For every operation, another account's row does not exist. The tests are generated from the document, so that a new
 * operation is covered, or fails here until its row is known.
 */

const fixtures = await loadFixtures()

/** By the name of an id: the error code of an id that names no record. */
const MISSING = new Map(
  recordsOf(fixtures).map(({ idName, missingCode }) => [idName, missingCode] as const)
)

/** Operations on the key's own account, which have no id. */
const OWN = new Set([
  'createAccount', 'getAccount', 'deleteAccount', 'getClock', 'deleteFaults', 'getJournal', 'putJournal',
  'deleteJournal', 'deleteRequests', 'getLimits', 'putLimits', 'deleteLimits', 'getState'
])

/** An attempt exists only where the service delivers: see test/webhooks/attempts.test.ts. */
const NEED_DELIVERY = new Set(['getWebhookAttempt'])

/** Ids in bodies that are no references to records of the store; the tests of the lab cover them. */
const NO_REFERENCES = new Set(['createFault'])

interface Schema {
  $ref?: string
  type?: string
  format?: string
  example?: unknown
  properties?: Record<string, Schema>
  required?: string[]
}

interface Parameter { name: string, in: string }

interface Operation {
  operationId: string
  method: string
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  answer: Schema | undefined
}

type Store = CreatedIds

t.test('isolation', async (t) => {
  const { app, openAccount } = await startApp(t)
  const document = expandComponents(app.swagger()) as any
  const operations = operationsOf(document)
  const named = operations.filter(({ path }) => path.includes('{'))
  const listed = operations.filter(({ method, path, answer }) =>
    method === 'GET' && answer?.type === 'array' && !path.includes('{'))

  const bob = await openAccount('The other store')
  const his = await storeOf(bob)
  const before = await everythingOf(bob)

  t.test('every operation concerns a row, a list, a new row or the account itself', async (t) => {
    t.ok(named.length > 10 && listed.length > 5, `${named.length} operations with an id, ${listed.length} lists`)
    for (const operation of operations) {
      const known =
        named.includes(operation) ||
        listed.includes(operation) ||
        OWN.has(operation.operationId) ||
        operation.method === 'POST'
      t.ok(known, operation.operationId)
      for (const name of idsIn(operation)) { t.ok(MISSING.has(name), `${operation.operationId}: a fixture creates a record with a ${name}`) }
    }
  })

  for (const operation of named) {
    const { operationId, method } = operation
    t.test(`${operationId} does not find the row of another account`, async (t) => {
      const ada = await openAccount()
      const path = pathOf(operation, his)
      const body = sampleOf(operation.body)
      for (const verb of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const answer = await ada.request(verb, path, { body })
        t.equal(answer.status, 404, `${verb} ${path}: ${answer.text}`)
      }
      const foreign = await ada.request(method, path, { body })
      t.equal(foreign.body?.code, MISSING.get(idsIn(operation)[0]!))

      const nowhere = await ada.request(method, pathOf(operation, his, 'nowhere'), { body })
      t.same([nowhere.status, nowhere.text], [404, foreign.text], 'and cannot tell it from one that never was')
      if (method !== 'GET') {
        for (const headers of [{ 'if-match': '*' }, { 'if-none-match': '*' }]) {
          t.same((await ada.request(method, path, { body, headers })).status, 404, JSON.stringify(headers))
        }
      }

      if (NEED_DELIVERY.has(operationId)) return
      const eve = await openAccount()
      const own = await eve.request(method, pathOf(operation, await storeOf(eve)), { body: bodyOf(operation, {}) })
      t.not(own.status, 404, 'its owner finds it')
    })
  }

  const referring = operations.filter(({ operationId, body }) =>
    idsOf(body).length > 0 && !NO_REFERENCES.has(operationId))
  for (const operation of referring) {
    t.test(`${operation.operationId} refuses a row of another account in its body`, async (t) => {
      const ada = await openAccount()
      const hers = await storeOf(ada)
      for (const name of idsOf(operation.body)) {
        const send = async (id: string | number): Promise<Answer> =>
          await ada.request(operation.method, pathOf(operation, hers), {
            body: bodyOf(operation, { ...hers, [name]: id }, name)
          })
        const foreign = await send(his[name]!)
        t.same([foreign.status, foreign.body.code], [409, `unknown_${name.replace(/Id$/, '')}`], foreign.text)
        t.equal((await send(999_999_999)).text, foreign.text, 'and cannot tell it from one that never was')
        t.ok((await send(hers[name]!)).status < 300, 'its owner may')
      }
    })
  }

  for (const operation of listed) {
    t.test(`${operation.operationId} does not list the rows of another account`, async (t) => {
      const ada = await openAccount()
      const empty = await listOf(ada, operation.path)
      await storeOf(ada)
      const hers = await listOf(ada, operation.path)
      const theirs = await listOf(bob, operation.path)
      t.ok(theirs.length > 0, 'he has rows here: storeOf makes some')
      t.ok(hers.length > empty.length, 'and so has she')
      t.same(hers.filter((row) => theirs.includes(row)), [])
      const own = operation.operationId === 'listApiKeys' ? 1 : 0
      t.equal(empty.length, own, 'a new account begins with nothing')

      for (const { name } of operation.parameters.filter((parameter) => parameter.in === 'query')) {
        if (name !== 'id' && !MISSING.has(name)) continue
        const id: unknown = JSON.parse(theirs[0]!)[name]
        t.same(await listOf(ada, `${operation.path}?${name}=${id}`), [], `also when asked for by ${name}`)
        t.not((await listOf(bob, `${operation.path}?${name}=${id}`)).length, 0)
      }
    })
  }

  t.test('the other account is unchanged at the end', async (t) => {
    t.same(await everythingOf(bob), before)
  })

  /** Creates a row of every kind. @returns their ids by name */
  async function storeOf (client: Client): Promise<Store> {
    return await createRecords(client, fixtures)
  }

  async function everythingOf (client: Client): Promise<Record<string, string[]>> {
    const everything: Record<string, string[]> = {}
    // These reads themselves are recorded.
    const unchanging = listed.filter(({ operationId }) => operationId !== 'listRequests')
    for (const { path } of unchanging) everything[path] = (await listOf(client, path)).map(withoutUse)
    return everything
  }

  async function listOf (client: Client, path: string): Promise<string[]> {
    const { status, body, text } = await client.get(`${path}${path.includes('?') ? '&' : '?'}limit=100`)
    if (status !== 200) throw new Error(`${path} answers ${text}`)
    return body.map((row: unknown) => JSON.stringify(row))
  }
})

/** Removes the time of a key's last use, which the service writes after its answer. */
function withoutUse (row: string): string {
  return row.replace(/"lastUsedAt":"[^"]*",?/, '')
}

function operationsOf (document: any): Operation[] {
  const resolve = (schema: Schema | undefined): Schema | undefined => {
    if (schema?.$ref === undefined) return schema
    return resolve(document.components.schemas[schema.$ref.split('/').at(-1)!])
  }
  return Object.entries<any>(document.paths).flatMap(([path, { parameters: shared = [], ...methods }]) =>
    Object.entries<any>(methods).map(([method, { operationId, parameters = [], requestBody, responses }]) => ({
      operationId,
      method: method.toUpperCase(),
      path,
      parameters: [...shared, ...parameters],
      body: resolve(requestBody?.content['application/json']?.schema),
      answer: resolve(
        responses['200']?.content?.['application/json']?.schema ??
          Object.values<any>(responses['200']?.content ?? {})[0]?.schema
      )
    }))
  )
}

/** Returns the names of the ids in an operation's path. */
function idsIn ({ path }: Operation): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
}

/** Returns the names of the ids of other rows in a body. */
function idsOf (body: Schema | undefined): string[] {
  return Object.entries(body?.properties ?? {})
    .filter(([name, { format }]) => format === 'int64' && MISSING.has(name))
    .map(([name]) => name)
}

function pathOf ({ path }: Operation, store: Store, nowhere?: 'nowhere'): string {
  return path.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const id = store[name]
    if (nowhere === undefined) return String(id)
    return typeof id === 'string' ? id.slice(0, -16) + 'z'.repeat(16) : '999999999'
  })
}

/** Builds a valid body from the examples of its schema: the required members and, with `whole`, all others. */
function sampleOf (body: Schema | undefined, whole = true): Record<string, unknown> | undefined {
  if (body === undefined) return undefined
  const { properties = {}, required = [], example } = body
  // Its members may exclude each other.
  if (whole && example !== undefined) return example as Record<string, unknown>
  return Object.fromEntries(Object.entries(properties)
    .filter(([name, { example }]) => required.includes(name) || (whole && example !== undefined))
    .map(([name, { example }]) => [name, example]))
}

/** Fills in the ids of a store: the required ones, and one optional one by name. */
function bodyOf ({ body }: Operation, store: Store, name?: string): Record<string, unknown> | undefined {
  const sample = sampleOf(body, false)
  if (sample === undefined) return undefined
  for (const id of idsOf(body)) if (id in sample || id === name) sample[id] = store[id]
  return sample
}
