import { join } from 'node:path'
import { comparison, ratioOf } from './comparison.ts'
import type { Plan } from './measure.ts'
import { measurePairs, type Pairs, type Side } from './paired.ts'
import { startServer, type Generator } from './processes.ts'
import { openStores, type Stores } from './stores.ts'

const TRIALS = [
  { title: 'get one pet', workload: 'get' },
  { title: 'list 20', workload: 'list' },
  { title: 'list 20 by status', workload: 'filtered' },
  { title: 'list 20 by category and status', workload: 'categoryAndStatus' },
  { title: 'inventory by status', workload: 'inventory' },
  { title: 'orders by completeness', workload: 'orders' },
  { title: 'create a pet', workload: 'create' },
  { title: 'order, spread', workload: 'spread' }
]

/** Minimum rate without statistics, as a share of that with them. */
const LIMIT = 0.5

/**
 * Measures petstore with 1,001 accounts, of which one is far larger than the others. No plan may need statistics:
 * PostgreSQL collects them a minute after a bulk import.
 */
export async function measureManyAccounts (
  plan: Plan, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const pairs: Pairs[] = []
  for (const database of plan.databases) {
    const opened: Stores[] = []
    const sides: Side[] = []
    try {
      for (const [name, analyzed] of [['never analyzed', false], ['analyzed', true]] as const) {
        say(`${database}: 1,001 accounts, ${name}`)
        const own = join(folder, name.replace(' ', '-'))
        const stores = await openStores(database, own, { ...plan, shape: 'many', analyzed })
        opened.push(stores)
        const store = await stores.copy('many')
        const server = await startServer('petstore', store.url, join(own, `${database}.log`))
        sides.push({ name, servers: [server], stores, store })
      }
      for (const trial of TRIALS) pairs.push(await measurePairs(sides, { ...plan, ...trial, database }, generator, say))
    } finally {
      for (const { servers, store } of sides) {
        await Promise.all(servers.map(async (server) => { await server.stop() }))
        await store.remove()
      }
      for (const stores of opened) await stores.close()
    }
  }
  console.log(`\nMany accounts\n${comparison(pairs)}`)
  for (const pair of pairs) {
    const { median } = ratioOf(pair, ({ perSecond }) => perSecond)
    if (median < LIMIT) {
      console.log(`${pair.database} · ${pair.title}: ${median.toFixed(2)} without statistics (limit ${LIMIT}): NOT REACHED`)
    }
  }
  return pairs
}
