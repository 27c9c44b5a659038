import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plan } from './measure.ts'
import { startServer, type Generator } from './processes.ts'
import { Void } from './rows.ts'
import { openStores } from './stores.ts'

const MB = 1024 * 1024

/** The targets: resident size and write-ahead log in MB, the start in ms. */
const RESIDENT_LIMIT = 250
const WAL_LIMIT = 64
const START_LIMIT = 1_000

/** The interval between two measurements of the sizes under load. */
const LOOK_MS = 5_000

/** Measures the sizes of petstore under mixed load. */
export async function measureMemory (
  plan: Plan,
  seconds: number,
  folder: string,
  generator: Generator,
  say: (text: string) => void
): Promise<void> {
  for (const database of plan.databases) {
    const stores = await openStores(database, folder, plan)
    try {
      const store = await stores.copy('petstore')
      const server = await startServer('petstore', store.url, join(folder, 'memory.log'))
      const looks: Array<{ at: number, resident: number, wal: number }> = []
      const start = performance.now()
      const load = generator.run({
        ports: [server.port],
        scopes: stores.scopes,
        workload: 'mixed',
        connections: plan.connections,
        seconds,
        seed: 1
      })
      while (performance.now() - start < seconds * 1_000) {
        await sleep(Math.min(LOOK_MS, (seconds * 1_000) / 20))
        const look = {
          at: (performance.now() - start) / 1_000,
          resident: (await server.usage()).rss / MB,
          wal: store.walSize() / MB
        }
        looks.push(look)
        say(
          `${database} · ${look.at.toFixed(0)} s · resident ${look.resident.toFixed(0)} MB · write-ahead log ${look.wal.toFixed(0)} MB`
        )
      }
      const { requests, unexpected } = await load
      await server.stop()
      await store.remove()
      if (Object.keys(unexpected).length > 0) throw new Void(`unexpected answers: ${JSON.stringify(unexpected)}`)

      const resident = looks.map((look) => look.resident)
      const wal = Math.max(...looks.map((look) => look.wal))
      const half = Math.ceil(resident.length / 2)
      console.log(`\n${database}: ${requests} requests in ${seconds} s`)
      console.log(
        `  resident size: at most ${Math.max(...resident).toFixed(0)} MB (limit ${RESIDENT_LIMIT}); second half ${mean(resident.slice(half)).toFixed(0)} MB after ${mean(resident.slice(resident.length >> 2, half)).toFixed(0)} MB: ${reached(Math.max(...resident) < RESIDENT_LIMIT)}`
      )
      if (database === 'sqlite') {
        console.log(
          `  write-ahead log: at most ${wal.toFixed(0)} MB (limit ${WAL_LIMIT}): ${reached(wal < WAL_LIMIT)}`
        )
      }
    } finally {
      await stores.close()
    }
  }
}

/** Measures the time from the start of the process to the first 200 of /readyz, on a migrated store. */
export async function measureStart (plan: Plan, folder: string, say: (text: string) => void): Promise<void> {
  for (const database of plan.databases) {
    const stores = await openStores(database, folder, plan)
    try {
      const store = await stores.copy('petstore')
      const times: number[] = []
      for (let round = 1; round <= plan.rounds; round++) {
        say(`${database} · start ${round} of ${plan.rounds}`)
        const start = performance.now()
        const server = await startServer('petstore', store.url, join(folder, 'start.log'))
        while ((await fetch(`http://127.0.0.1:${server.port}/readyz`)).status !== 200) await sleep(2)
        times.push(performance.now() - start)
        await server.stop()
      }
      const median = times.toSorted((a, b) => a - b)[times.length >> 1]!
      console.log(
        `\n${database}: ready after ${times.map((time) => time.toFixed(0)).join(', ')} ms (limit ${START_LIMIT}): ${reached(median < START_LIMIT)}`
      )
      await store.remove()
    } finally {
      await stores.close()
    }
  }
}

function mean (values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function reached (is: boolean): string {
  return is ? 'reached' : 'NOT REACHED'
}
