import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseName } from '../../src/database/dialect.ts'
import { compare } from './compare.ts'
import type { Load } from './load.ts'
import { SERVERS, startServer, type Generator, type Server, type ServerName } from './processes.ts'
import { startRowCheck, Void, type RowCheck } from './rows.ts'
import { ENVIRONMENT, type Shape } from './seed.ts'
import { openStores, untilSettled, type Store, type Stores } from './stores.ts'
import { MEASURED_SHAPES, shapeOf, workloads } from './workloads.ts'

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

interface Runner { server: Server, store: Store, rows: RowCheck }

/** Runs the plan. Passes each sample to `record`, and the progress to `say`. */
export async function measure (
  plan: Plan,
  folder: string,
  generator: Generator,
  record: (sample: Sample) => void,
  say: (text: string) => void
): Promise<void> {
  for (const database of plan.databases) {
    for (const shape of MEASURED_SHAPES) {
      const names = plan.workloads.filter((name) => shapeOf(name) === shape)
      if (names.length > 0) await measureShape(database, shape, names)
    }
  }

  async function measureShape (database: DatabaseName, shape: Shape, names: string[]): Promise<void> {
    say(`${database}: a store of ${plan.pets} pets (${shape})`)
    const stores = await openStores(database, folder, { ...plan, shape })
    try {
      // On a contended store the servers do what they do on the usual one.
      if (shape !== 'contended') {
        await withServers(stores, folder, shape, ['petstore', 'baseline', 'prisma'], async (runners) => {
          const count = await compare(runners, stores.scopes[0]!, shape).catch((error: Error) => {
            throw new Void(error.message)
          })
          say(`${database}: petstore, baseline and prisma give the same ${count} answers and leave the same rows`)
        })
      }
      for (const workload of names) {
        await withServers(stores, folder, shape, [...SERVERS], async (runners) => {
          await measureWorkload(plan, stores, database, workload, runners, generator, record, say)
        })
      }
    } finally {
      await stores.close()
    }
  }
}

/** Starts new processes on new copies of the store, so that no measurement affects another. */
async function withServers (
  stores: Stores,
  folder: string,
  shape: Shape,
  names: ServerName[],
  use: (runners: Runner[]) => Promise<void>
): Promise<void> {
  const runners: Runner[] = []
  const copies: Store[] = []
  const logs = names.map((name) => join(folder, `${name}.log`))
  try {
    for (const name of names) copies.push(await stores.copy(name))
    const servers = await Promise.allSettled(
      names.map(async (name, i) =>
        await startServer(name, copies[i]!.url, logs[i]!, { environment: ENVIRONMENT[shape] }))
    )
    for (const [i, started] of servers.entries()) {
      if (started.status !== 'fulfilled') continue
      const store = copies[i]!
      runners.push({ store, server: started.value, rows: await startRowCheck(store) })
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
  const { title } = workloads[workload]!

  const load = async (runner: Runner, connections: number, seconds: number, seed: number): Promise<Load> => {
    const answered = await generator.run({
      ports: [runner.server.port],
      scopes: stores.scopes,
      workload,
      connections,
      seconds,
      seed
    })
    const wrong = Object.entries(answered.unexpected)
      // Floor refuses nothing.
      .filter(([what]) => runner.server.name !== 'floor' || !what.startsWith('20'))
      .map(([what, count]) => `${count} × ${what}`)
    if (wrong.length > 0) {
      throw new Void(
        `${title} on ${database}, ${runner.server.name}: unexpected answers: ${wrong.join(', ')}${answered.example === undefined ? '' : `, such as ${answered.example}`}`
      )
    }
    runner.rows.add(answered.left)
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
  for (const { server: { name }, rows } of runners) {
    if (name !== 'floor') await rows.check(`${title} on ${database}, ${name}`)
  }
}
