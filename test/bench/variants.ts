import { join } from 'node:path'
import type { DatabaseName } from '../../src/database/dialect.ts'
import type { Plan } from './measure.ts'
import { measurePairs, type Pairs, type Side } from './paired.ts'
import { startServer, type Generator, type Server } from './processes.ts'
import { openStores } from './stores.ts'
import { workloads } from './workloads.ts'

/** A way to run this version of petstore. */
export interface Variant {
  name: string
  /** How many processes share the store (1). */
  processes?: number
  /** Settings of each process. */
  environment?: Record<string, string>
  /** A statement that its store gets before it starts. */
  sql?: string
}

/** Measures two or more ways to run this version in turns, each on a store of its own. */
export async function measureVariants (
  variants: Variant[], plan: Plan, database: DatabaseName, folder: string, generator: Generator,
  say: (text: string) => void
): Promise<Pairs[]> {
  const pairs: Pairs[] = []
  const stores = await openStores(database, join(folder, database), plan)
  try {
    for (const workload of plan.workloads) {
      const { title, shape } = workloads[workload]!
      if (shape !== undefined) continue
      const sides: Side[] = []
      try {
        for (const [index, { name, processes = 1, environment = {}, sql }] of variants.entries()) {
          const store = await stores.copy(`variant_${index}`)
          if (sql !== undefined) await store.query(sql)
          const servers: Server[] = []
          sides.push({ name, servers, stores, store })
          for (let i = 0; i < processes; i++) {
            const log = join(folder, `${database}-${index}-${i}.log`)
            servers.push(await startServer('petstore', store.url, log, { environment }))
          }
        }
        pairs.push(await measurePairs(sides, { ...plan, database, title, workload }, generator, say))
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
  return pairs
}
