import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseName } from '../../src/database/dialect.ts'
import { compare } from './compare.ts'
import type { Load } from './load.ts'
import { SERVERS, startServer, type Generator, type Server, type ServerName } from './processes.ts'
import type { Shape } from './seed.ts'
import { openStores, untilSettled, type Store, type Stores } from './stores.ts'
import { workloads } from './workloads.ts'

export interface Plan {
  databases: DatabaseName[]
  workloads: string[]
  pets: number
  rounds: number
  /** The seconds of a measurement. The warm-up takes half of it. */
  seconds: number
  connections: number
}

/** One measurement of one server. */
export interface Sample {
  database: DatabaseName
  workload: string
  server: ServerName
  round: number
  connections: number
  perSecond: number
  /** Latency in ms. */
  p50: number
  p99: number
  /** CPU time of the service per request in µs. */
  service: number
  /** CPU time of the database's processes; 0 on SQLite, `null` where the system does not report it. */
  databaseCpu: number | null
  /** The load generator's share of one core. */
  generator: number
  requests: number
  statuses: Record<string, number>
}

/** Thrown when a run did not measure what it should. Its figures are void. */
export class Void extends Error {}

interface Runner { server: Server, store: Store, writes: number }

/** Runs the plan. Passes each sample to `record`, and the progress to `say`. */
export async function measure (
  plan: Plan,
  folder: string,
  generator: Generator,
  record: (sample: Sample) => void,
  say: (text: string) => void
): Promise<void> {
  for (const database of plan.databases) {
    say(`${database}: a store of ${plan.pets} pets`)
    const stores = await openStores(database, folder, plan)
    try {
      await withServers(stores, folder, ['petstore', 'baseline', 'prisma'], async (runners) => {
        const count = await compare(runners, stores.scopes[0]!).catch((error: Error) => {
          throw new Void(error.message)
        })
        say(`${database}: petstore, baseline and prisma give the same ${count} answers and leave the same rows`)
      })
      await measureWorkloads(stores, 'usual')
    } finally {
      await stores.close()
    }
    if (!plan.workloads.some((name) => workloads[name]!.shape === 'contended')) continue
    const contended = await openStores(database, folder, { ...plan, shape: 'contended' })
    try {
      await measureWorkloads(contended, 'contended')
    } finally {
      await contended.close()
    }

    async function measureWorkloads (stores: Stores, wanted: Shape): Promise<void> {
      for (const workload of plan.workloads) {
        if ((workloads[workload]!.shape ?? 'usual') !== wanted) continue
        await withServers(stores, folder, [...SERVERS], async (runners) => {
          await measureWorkload(plan, stores, database, workload, runners, generator, record, say)
        })
      }
    }
  }
}

/** Starts new processes on new copies of the store, so that no measurement affects another. */
async function withServers (
  stores: Stores,
  folder: string,
  names: ServerName[],
  use: (runners: Runner[]) => Promise<void>
): Promise<void> {
  const runners: Runner[] = []
  const copies: Store[] = []
  const logs = names.map((name) => join(folder, `${name}.log`))
  try {
    for (const name of names) copies.push(await stores.copy(name))
    const servers = await Promise.allSettled(
      names.map(async (name, i) => await startServer(name, copies[i]!.url, logs[i]!))
    )
    for (const [i, started] of servers.entries()) {
      if (started.status === 'fulfilled') runners.push({ store: copies[i]!, server: started.value, writes: 0 })
    }
    for (const started of servers) if (started.status === 'rejected') throw started.reason
    await use(runners)
  } finally {
    await Promise.all(
      runners.map(async ({ server }) => {
        await server.stop()
      })
    )
    for (const store of copies) await store.remove()
  }
  // A complete run would log tens of millions of lines.
  for (const log of logs) rmSync(log)
}

async function measureWorkload (
  plan: Plan,
  stores: Stores,
  database: DatabaseName,
  workload: string,
  runners: Runner[],
  generator: Generator,
  record: (sample: Sample) => void,
  say: (text: string) => void
): Promise<void> {
  const { inserts, title } = workloads[workload]!
  const before = await rowCounts(runners[0]!.store, inserts)

  const load = async (runner: Runner, connections: number, seconds: number, seed: number): Promise<Load> => {
    const answered = await generator.run({
      ports: [runner.server.port],
      scopes: stores.scopes,
      workload,
      connections,
      seconds,
      seed
    })
    const wrong = Object.entries(answered.unexpected).map(([what, count]) => `${count} × ${what}`)
    if (wrong.length > 0) {
      throw new Void(
        `${title} on ${database}, ${runner.server.name}: unexpected answers: ${wrong.join(', ')}${answered.example === undefined ? '' : `, such as ${answered.example}`}`
      )
    }
    runner.writes += answered.statuses['201'] ?? 0
    return answered
  }

  for (const runner of runners) await load(runner, plan.connections, plan.seconds / 2, 0)
  for (let round = 1; round <= plan.rounds; round++) {
    // The order rotates, because the database and the disk still process the writes of a server during the next one.
    const turned = [...runners.slice(round % runners.length), ...runners.slice(0, round % runners.length)]
    for (const runner of turned) {
      for (const connections of [plan.connections, 1]) {
        const service = (await runner.server.usage()).cpu
        const own = stores.cpu()
        const { requests, seconds, p50, p99, cpu, statuses } = await load(runner, connections, plan.seconds, round)
        // The delivery of pending messages belongs to the cost, too.
        await untilSettled(runner.store)
        const ownAfter = stores.cpu()
        record({
          database,
          workload,
          server: runner.server.name,
          round,
          connections,
          perSecond: requests / seconds,
          p50,
          p99,
          service: ((await runner.server.usage()).cpu - service) / requests,
          databaseCpu: own === undefined || ownAfter === undefined ? null : (ownAfter - own) / requests,
          generator: cpu,
          requests,
          statuses
        })
      }
      say(`${database} · ${title} · round ${round} of ${plan.rounds} · ${runner.server.name}`)
    }
  }
  await checkRows(runners, inserts, before, `${title} on ${database}`)
}

/** Checks that each 201 left one row and each row had a 201. Otherwise the server did other work than the others. */
async function checkRows (runners: Runner[], inserts: string[], before: number, what: string): Promise<void> {
  for (const { server, store, writes } of runners) {
    if (server.name === 'floor') continue
    const rows = await rowCounts(store, inserts) - before
    if (rows !== writes) throw new Void(`${what}: ${server.name} answered 201 ${writes} times and left ${rows} rows`)
  }
}

async function rowCounts (store: Store, tables: string[]): Promise<number> {
  let sum = 0
  for (const table of tables) sum += Number((await store.query(`SELECT count(*) AS count FROM ${table}`))[0]!['count'])
  return sum
}
