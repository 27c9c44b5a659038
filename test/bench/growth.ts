import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan } from './measure.ts'
import { startServer, type Generator, type Server } from './processes.ts'
import { Void } from './rows.ts'
import { openStores, type Store, type Stores } from './stores.ts'

const SMALL = 10_000
const LARGE = 1_000_000

/** Limits the CPU per request on the large store, as a multiple of that on the small one. */
const LIMIT = 1.2

/** Pages start anywhere among this many pets. 200 would hardly leave the first page. */
const FIRST_PAGE = 200

const WORK = [
  { title: 'get one pet', workload: 'get' },
  { title: 'list 20, first page', workload: 'list', pets: FIRST_PAGE },
  { title: 'list 20, a page from anywhere', workload: 'list' },
  { title: 'create a pet', workload: 'create' }
]

interface Side { pets: number, stores: Stores, store: Store, server: Server }

/** Measures petstore on a small and a large store in turns. The cost of a request must not grow with the store. */
export async function measureGrowth (
  plan: Plan,
  folder: string,
  generator: Generator,
  say: (text: string) => void
): Promise<void> {
  for (const database of plan.databases) {
    const sides: Side[] = []
    try {
      for (const pets of [SMALL, Math.max(plan.pets, LARGE)]) {
        say(`${database}: a store of ${pets} pets`)
        const own = join(folder, String(pets))
        mkdirSync(own, { recursive: true })
        const stores = await openStores(database, own, { pets })
        const store = await stores.copy('petstore')
        sides.push({
          pets,
          stores,
          store,
          server: await startServer('petstore', store.url, join(own, 'petstore.log'))
        })
      }
      for (const { title, workload, pets } of WORK) {
        const costs = sides.map((): number[] => [])
        for (let round = 0; round <= plan.rounds; round++) {
          for (const [i, side] of sides.entries()) {
            const cost = await costOf(side, {
              workload,
              pets: pets ?? side.pets,
              connections: plan.connections,
              seconds: plan.seconds,
              seed: round
            })
            // The first round only fills the caches.
            if (round > 0) costs[i]!.push(cost)
            say(`${database} · ${title} · ${side.pets} pets · round ${round} of ${plan.rounds}`)
          }
        }
        const [small, large] = costs.map((values) => values.toSorted((a, b) => a - b)[values.length >> 1]!) as [
          number,
          number
        ]
        const ratio = large / small
        console.log(
          `${database} · ${title}: ${small.toFixed(1)} µs with ${sides[0]!.pets} pets, ${large.toFixed(1)} µs with ${sides[1]!.pets}: ${ratio.toFixed(2)} × (limit ${LIMIT}): ${ratio <= LIMIT ? 'reached' : 'NOT REACHED'}`
        )
      }
    } finally {
      for (const { server, store, stores } of sides) {
        await server.stop()
        await store.remove()
        await stores.close()
      }
    }
  }

  /** CPU time per request in µs, of service and database. */
  async function costOf (
    { server, stores }: Side,
    job: { workload: string, pets: number, connections: number, seconds: number, seed: number }
  ): Promise<number> {
    const used = async (): Promise<number> => (await server.usage()).cpu + (stores.cpu() ?? 0)
    const before = await used()
    const { requests, unexpected } = await generator.run({
      ...job, ports: [server.port], scopes: [{ ...stores.scopes[0]!, pets: job.pets }]
    })
    if (Object.keys(unexpected).length > 0) throw new Void(`unexpected answers: ${JSON.stringify(unexpected)}`)
    return ((await used()) - before) / requests
  }
}
