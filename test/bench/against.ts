import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import type { DatabaseName } from '../../src/database/dialect.ts'
import { comparison } from './comparison.ts'
import type { Plan } from './measure.ts'
import { measurePairs, type Pairs, type Side } from './paired.ts'
import { builtIn, startServer, type Generator } from './processes.ts'
import { ENVIRONMENT } from './seed.ts'
import { openStores, type Stores } from './stores.ts'
import { MEASURED_SHAPES, shapeOf, workloads } from './workloads.ts'

interface Build { name: string, folder: string | undefined, stores: Stores }

/** Measures this version and another built version of petstore in turns, each with its own migrations. */
export async function measureAgainst (
  plan: Plan, other: string, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const pairs: Pairs[] = []
  builtIn(resolve(other))
  for (const database of plan.databases) {
    for (const shape of MEASURED_SHAPES) {
      const names = plan.workloads.filter((name) => shapeOf(name) === shape)
      if (names.length === 0) continue
      const builds: Build[] = []
      try {
        for (const [name, root] of [['this', undefined], ['other', resolve(other)]] as const) {
          const migrate = root === undefined ? {} : { migrate: async (url: string) => { migrateWith(root, url) } }
          const stores = await openStores(database, join(folder, `${name}-${shape}`), { ...plan, shape, ...migrate })
          builds.push({ name, folder: root, stores })
        }
        for (const workload of names) {
          pairs.push(...await measureBuilds(plan, database, workload, builds, folder, generator, say))
        }
      } finally {
        for (const { stores } of builds) await stores.close()
      }
    }
  }
  console.log(`\n${comparison(pairs)}`)
  return pairs
}

/** Measures one workload with many connections and with one, by new processes on new copies of the stores. */
async function measureBuilds (
  plan: Plan, database: DatabaseName, workload: string, builds: Build[], folder: string, generator: Generator,
  say: (text: string) => void
): Promise<Pairs[]> {
  const sides: Side[] = []
  try {
    for (const { name, folder: root, stores } of builds) {
      const store = await stores.copy('paired')
      const environment = ENVIRONMENT[shapeOf(workload)]
      const options = { environment, ...root === undefined ? {} : { command: builtIn(root) } }
      const server = await startServer('petstore', store.url, join(folder, `${name}.log`), options)
      sides.push({ name, servers: [server], stores, store })
    }
    const pairs: Pairs[] = []
    for (const connections of new Set([plan.connections, 1])) {
      const { title } = workloads[workload]!
      pairs.push(await measurePairs(sides, { ...plan, database, title, workload, connections }, generator, say))
    }
    return pairs
  } finally {
    for (const { servers, store } of sides) {
      await Promise.all(servers.map(async (server) => { await server.stop() }))
      await store.remove()
    }
  }
}

function migrateWith (root: string, url: string): void {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'dist/cli.js'), 'migrate'], {
    env: { ...process.env, DATABASE_URL: url }, encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`The migrations of ${root} failed: ${stderr}`)
}
