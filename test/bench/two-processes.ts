import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { comparison } from './comparison.ts'
import type { Plan } from './measure.ts'
import { measurePairs, type Pairs, type Side } from './paired.ts'
import { startServer, type Generator, type Server } from './processes.ts'
import { openStores } from './stores.ts'
import { workloads } from './workloads.ts'

const CORES = 4

/** Measures two processes of petstore on one PostgreSQL against one, with the same number of connections. */
export async function measureTwoProcesses (
  plan: Plan, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const pairs: Pairs[] = []
  const stores = await openStores('postgresql', folder, plan)
  try {
    for (const workload of plan.workloads) {
      const { title, shape } = workloads[workload]!
      if (shape !== undefined) continue
      const sides: Side[] = []
      try {
        for (const [name, count] of [['two processes', 2], ['one process', 1]] as const) {
          const store = await stores.copy(`processes_${count}`)
          const servers: Server[] = []
          sides.push({ name, servers, stores, store })
          for (let i = 0; i < count; i++) {
            servers.push(await startServer('petstore', store.url, join(folder, `process-${i}.log`)))
          }
        }
        pairs.push(await measurePairs(sides, { ...plan, database: 'postgresql', title, workload }, generator, say))
      } finally {
        for (const { servers, store } of sides) {
          await Promise.all(servers.map(async (server) => { await server.stop() }))
          await store.remove()
        }
      }
    }
  } finally {
    await stores.close()
  }
  console.log(`\nTwo processes\n${comparison(pairs)}`)
  const cores = availableParallelism()
  console.log(cores < CORES
    ? `On ${cores} cores the goal is 0.9 of one process. What more cores give is not measured.`
    : `On ${cores} cores the goal is 1.5 times one process.`)
  return pairs
}
