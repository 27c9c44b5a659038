import t from 'tap'
import { startApp, type Answer, type Client, type TestApp } from '../support/app.ts'
import { createRecords, loadFixtures, recordsOf, type CreatedIds, type Id } from '../support/fixture.ts'
import { newOrder, newPet, petOf, stocked } from '../support/fixtures.ts'
import { inOneGroup } from '../support/groups.ts'
import { bodyOf, operationsOf, pathOf, type Operation } from '../support/operations.ts'

/**
 * Writes that share a transaction. A command loads and locks the rows of all its inputs together, so a check that is
 * missing shows only when the owner of a row writes at the same moment.
 */

const fixtures = await loadFixtures()

t.test('accounts that share a group', async (t) => {
  const service = await startApp(t)
  const operations = operationsOf(service.app).filter(({ method }) => method !== 'GET')
  const named = operations.filter(({ path }) => path.includes('{'))
  const missing = new Map(recordsOf(fixtures).map(({ idName, missingCode }) => [idName, missingCode]))
  t.ok(named.length > 8, `${named.length} writes with an id`)

  for (const operation of named) {
    t.test(`${operation.operationId} finds the row of its owner only`, async (t) => {
      for (const order of ['owner', 'stranger'] as const) {
        const [ada, eve] = [await service.openAccount(), await service.openAccount()]
        const ids = await createRecords(ada, fixtures)
        const send = async (client: Client): Promise<Answer> => await write(client, operation, ids)
        const [owner, stranger] = await inTurn(service, order, async () => await send(ada), async () => await send(eve))
        const code = missing.get([...operation.path.matchAll(/\{(\w+)\}/g)].at(-1)![1]!)
        t.same([stranger!.status, stranger!.body?.code], [404, code], `the ${order} comes first: ${stranger!.text}`)
        // A row that other rows refer to is not deleted.
        t.match(String(owner!.status), /^(2..|409)$/, owner!.text)
      }
    })
  }

  // The code of an unknown keyId has another form: test/lab/faults.test.ts.
  for (const operation of operations.filter(({ operationId }) => operationId !== 'createFault')) {
    for (const name of idsInBody(operation, missing)) {
      t.test(`${operation.operationId} refers with ${name} to rows of its own account only`, async (t) => {
        for (const order of ['owner', 'stranger'] as const) {
          const [ada, eve] = [await service.openAccount(), await service.openAccount()]
          const [hers, others] = [await createRecords(ada, fixtures), await createRecords(eve, fixtures)]
          const id = await freshTarget(ada, name, hers)
          const send = async (client: Client, ids: CreatedIds): Promise<Answer> => {
            const body = bodyOf(operation, ids as never, { [name]: id })
            return await client.request(operation.method, pathOf(operation, ids), { body })
          }
          const [owner, stranger] = await inTurn(service, order,
            async () => await send(ada, hers), async () => await send(eve, others))
          t.ok(owner!.status < 300, owner!.text)
          t.same([stranger!.status, stranger!.body?.code], [409, `unknown_${name.replace(/Id$/, '')}`], stranger!.text)
        }
      })
    }
  }

  t.test('a stranger changes nothing, whichever field the patch has', async (t) => {
    const [ada, eve] = [await service.openAccount(), await service.openAccount()]
    const petId = await newPet(ada, { name: 'Rex' })
    const [, stranger] = await inTurn(service, 'owner',
      async () => await ada.patch(`/pets/${petId}`, { status: 'pending' }),
      async () => await eve.patch(`/pets/${petId}`, { name: 'stolen' }))
    t.equal(stranger!.status, 404)
    t.match(await petOf(ada, petId), { name: 'Rex', status: 'pending' })
  })
})

t.test('orders of one pet that share a group', async (t) => {
  const service = await startApp(t)

  t.test('a sold out pet is pending while one order is open, and sold with the last', async (t) => {
    const ada = await service.openAccount()
    for (const [orders, completed] of [[4, 3], [20, 19]] as const) {
      const petId = await stocked(ada, orders)
      const ids: number[] = []
      for (let i = 0; i < orders; i++) ids.push(await newOrder(ada, petId))
      t.equal((await petOf(ada, petId)).status, 'pending')
      const complete = (id: number) => async (): Promise<Answer> =>
        await ada.patch(`/store/orders/${id}`, { complete: true })
      const answers = await inOneGroup(service.app, ids.slice(0, completed).map(complete))
      t.ok(answers.every(({ status }) => status === 200))
      t.equal((await petOf(ada, petId)).status, 'pending', `${completed} of ${orders} complete at once`)
      await inOneGroup(service.app, ids.slice(completed).map(complete))
      t.equal((await petOf(ada, petId)).status, 'sold')
    }
  })

  t.test('units that are ordered and returned at once are conserved', async (t) => {
    const ada = await service.openAccount()
    const petId = await stocked(ada, 4)
    const ids = [await newOrder(ada, petId, 2), await newOrder(ada, petId)]
    const answers = await inOneGroup(service.app, [
      ...ids.map((id) => async () => await ada.delete(`/store/orders/${id}`)),
      ...[1, 2, 3].map((quantity) => async () => await ada.post('/store/orders', { petId, quantity }))
    ])
    const placed = answers.slice(2).filter(({ status }) => status === 201)
      .reduce((sum, { body: { quantity } }) => sum + Number(quantity), 0)
    t.same((await ada.get(`/inventory/${petId}`)).body.quantity, 4 - placed)
  })
})

/** Sends two requests in one group, in an order. @returns the answers of the owner and of the stranger */
async function inTurn (
  { app }: TestApp, first: 'owner' | 'stranger', owner: () => Promise<Answer>, stranger: () => Promise<Answer>
): Promise<Answer[]> {
  if (first === 'owner') return await inOneGroup(app, [owner, stranger])
  return (await inOneGroup(app, [stranger, owner])).reverse()
}

/** Sends a write that changes the record: a PATCH with all examples of its body. */
async function write (client: Client, operation: Operation, ids: CreatedIds): Promise<Answer> {
  const { properties = {} } = operation.body ?? {}
  const fields = Object.fromEntries(Object.entries(properties)
    .filter(([name, { example }]) => example !== undefined && !(name in ids))
    .map(([name, { example }]) => [name, example]))
  const body = operation.method === 'PATCH' ? fields : bodyOf(operation, ids as never)
  return await client.request(operation.method, pathOf(operation, ids), { body })
}

function idsInBody ({ body }: Operation, known: Map<string, string>): string[] {
  return Object.entries(body?.properties ?? {})
    .filter(([name, { format }]) => format === 'int64' && known.has(name))
    .map(([name]) => name)
}

/** Creates a record that the write of its owner can refer to. */
async function freshTarget (owner: Client, name: string, ids: CreatedIds): Promise<Id> {
  if (name === 'petId') return await stocked(owner, 1_000)
  return await recordsOf(fixtures).find(({ idName }) => idName === name)!.create(owner, ids)
}
