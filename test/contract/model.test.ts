import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { newCategory } from '../support/fixtures.ts'
import { callOf, copyOf, seenOf, STATUSES, type Call, type Command, type Model, type Seen } from './model.ts'

/**
 * Compares random commands on a small store with a model of it, written independently from the contract. A run that
 * fails prints its seed and the commands. Repeat it with SEED=<seed>.
 */

/** The runs of each test. On a slow machine, no run starts after this time, but at least one runs. */
const RUNS = 30
const TIME_LIMIT_MS = 4_000

/** Stores in use at the same time. Their commands share groups, but never a row. */
const STORES = 4

const rowNumber = fc.nat({ max: 11 })
const petNumber = fc.nat({ max: 3 })
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ type: fc.constant('create' as const), status: fc.constantFrom(...STATUSES) }) },
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('count' as const), pet: petNumber, quantity: fc.nat({ max: 4 }) })
  },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('place' as const),
      pet: petNumber,
      quantity: fc.integer({ min: 1, max: 3 }),
      complete: fc.boolean()
    })
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('complete' as const), order: rowNumber }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('cancel' as const), order: rowNumber }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('set status' as const),
      pet: petNumber,
      status: fc.constantFrom(...STATUSES)
    })
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('delete' as const), pet: petNumber }) }
)

t.test('random commands on a small store', async (t) => {
  const running = await startApp(t)
  const second = await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })
  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31)

  await t.test('sequential commands give the results of the model', async (t) => {
    await check(t, fc.array(command, { minLength: 5, maxLength: 15 }).map((commands) => commands.map((one) => [one])))
  })

  await t.test('simultaneous commands to two services have the results of some sequential order', async (t) => {
    await check(t, fc.array(fc.array(command, { minLength: 1, maxLength: 6 }), { minLength: 3, maxLength: 8 }))
  })

  async function check (
    t: { ok: (value: unknown, text: string) => unknown },
    batches: fc.Arbitrary<Command[][]>
  ): Promise<void> {
    const deadline = Date.now() + TIME_LIMIT_MS
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(batches, { minLength: STORES, maxLength: STORES }), async (stores) => {
        if (runs > 0 && Date.now() > deadline) return
        await Promise.all(stores.map(runBatches))
        runs++
      }),
      { seed, numRuns: RUNS }
    )
    t.ok(runs > 0, `${runs} runs of ${STORES} stores, seed ${seed}`)
  }

  async function runBatches (batches: Command[][]): Promise<void> {
    const ada = await running.openAccount()
    const clients = [ada, second.withKey(ada.key!)]
    const categoryId = await newCategory(ada)
    const ids = { pets: [] as number[], orders: [] as number[] }
    let model: Model = { pets: new Map(), stock: new Map(), orders: new Map(), counted: new Map() }
    const opening: Command[][] = [[{ type: 'create', status: 'available' }], [{ type: 'count', pet: 0, quantity: 3 }]]
    for (const batch of [...opening, ...batches]) {
      const calls = batch.map((command) => callOf(command, ids, categoryId))
      const answers = await Promise.all(
        calls.map(
          async ({ request: [method, path, body] }, i) => await clients[i % 2]!.request(method, path, { body })
        )
      )
      const seen = await look(ada)
      const next = someOrder(model, calls.map((call, i) => ({ call, answer: answers[i]! })), seen)
      if (next === undefined) {
        throw new Error(
          `No order of these explains their answers and the store afterwards:\n${calls
            .map(({ request }, i) => `${JSON.stringify(request)} → ${answers[i]!.status} ${answers[i]!.text}`)
            .join('\n')}\nbefore: ${show(model)}\nafter:  ${JSON.stringify(seen)}`
        )
      }
      model = next
      holdsTogether(seen, model.counted)
      calls.forEach(({ command: { type } }, i) => {
        const { status, body } = answers[i]!
        if (status === 201) ids[type === 'create' ? 'pets' : 'orders'].push(body.id)
      })
    }
  }
})

async function look (client: Client): Promise<Seen> {
  const [pets, inventory, orders] = await Promise.all(['/pets', '/inventory', '/store/orders'].map(async (path) => {
    const { status, text, body } = await client.get(`${path}?limit=100`)
    if (status !== 200) throw new Error(`${path} answers ${text}`)
    return body
  }))
  return { pets, inventory, orders }
}

/** Checks the invariants of a store on its visible state and the sum of the counts. */
function holdsTogether ({ pets, inventory, orders }: Seen, counted: Map<number, number>): void {
  for (const { id, status } of pets) {
    const entry = inventory.find(({ petId }) => petId === id)
    const ofPet = orders.filter(({ petId }) => petId === id)
    const open = ofPet.filter(({ complete }) => !complete)
    const ordered = ofPet.reduce((sum, { quantity }) => sum + quantity, 0)
    const say = (law: string): never => {
      throw new Error(`Pet ${id}: ${law}: ${JSON.stringify({ pets, inventory, orders })}`)
    }
    if ((counted.get(id) ?? 0) !== (entry?.quantity ?? 0) + ordered) { say(`${counted.get(id) ?? 0} units were counted in`) }
    if (entry === undefined) continue
    if (entry.status !== status) say('the entry shows another status')
    if (entry.quantity < 0) say('stock is negative')
    if (entry.quantity === 0 && status === 'available') say('available with none in stock')
    if (entry.quantity === 0 && open.length === 0 && status !== 'sold') say('not sold with none in stock and none open')
  }
}

/** Searches an order of the calls in which the model gives the same answers. @returns the model after them, if any */
function someOrder (model: Model, left: Array<{ call: Call, answer: Answer }>, seen: Seen): Model | undefined {
  if (left.length === 0) return isDeepStrictEqual(seenOf(model), seen) ? model : undefined
  for (const [i, { call, answer }] of left.entries()) {
    const next = copyOf(model)
    const { status, body, code } = call.apply(next, answer)
    if (status !== answer.status) continue
    if (code === undefined ? !isDeepStrictEqual(answer.body, body) : answer.body?.code !== code) continue
    const found = someOrder(next, left.toSpliced(i, 1), seen)
    if (found !== undefined) return found
  }
  return undefined
}

function show (model: Model): string {
  return JSON.stringify(seenOf(model))
}
