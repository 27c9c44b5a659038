import type { DatabaseName } from '../../src/database/dialect.ts'
import type { Load } from './load.ts'
import type { Generator, Server } from './processes.ts'
import { startRowCheck, Void, type RowCheck } from './rows.ts'
import { untilSettled, type Store, type Stores } from './stores.ts'

/** What is compared: the processes of a service over one store. */
export interface Side {
  name: string
  servers: Server[]
  stores: Stores
  store: Store
}

/** What is measured on each side, in turns. */
export interface Trial {
  database: DatabaseName
  title: string
  workload: string
  connections: number
  seconds: number
  rounds: number
}

export interface PairedSample extends Omit<Load, 'seconds' | 'cpu'> {
  side: string
  round: number
  perSecond: number
  /** CPU time per request in µs, of service and database. */
  cpu: number
}

export interface Pairs extends Trial {
  sides: string[]
  samples: PairedSample[]
}

/** Measures the sides in turns, of which each round begins with another. A warm-up comes first. */
export async function measurePairs (
  sides: Side[], trial: Trial, generator: Generator, say: (text: string) => void
): Promise<Pairs> {
  const { database, title, rounds, seconds, connections } = trial
  const samples: PairedSample[] = []
  const checks = new Map<Side, RowCheck>()
  for (const side of sides) checks.set(side, await startRowCheck(side.store))
  for (let round = 0; round <= rounds; round++) {
    const first = round % sides.length
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      const time = round === 0 ? seconds / 2 : seconds
      const sample = await measureSide(side, { ...trial, seconds: time }, round, generator)
      checks.get(side)!.add(sample.left)
      if (round > 0) samples.push(sample)
    }
    if (round > 0) say(`${database} · ${title} · ${connections} connections · round ${round} of ${rounds}`)
  }
  for (const [{ name }, rows] of checks) await rows.check(`${title} on ${database}, ${name}`)
  return { ...trial, sides: sides.map(({ name }) => name), samples }
}

async function measureSide (
  { name, servers, stores, store }: Side, { workload, connections, seconds, title }: Trial, round: number,
  generator: Generator
): Promise<PairedSample> {
  const used = async (): Promise<number> => {
    const usages = await Promise.all(servers.map(async (server) => await server.usage()))
    return usages.reduce((sum, { cpu }) => sum + cpu, stores.cpu() ?? 0)
  }
  const before = await used()
  const load = await generator.run({
    ports: servers.map(({ port }) => port), scopes: stores.scopes, workload, connections, seconds, seed: round
  })
  checkAnswers(load, `${title}, ${name}`)
  await untilSettled(store)
  return {
    ...load, side: name, round, perSecond: load.requests / load.seconds, cpu: (await used() - before) / load.requests
  }
}

/** @throws Void if a request was not answered as expected */
export function checkAnswers ({ unexpected, example }: Load, title: string): void {
  const wrong = Object.entries(unexpected).map(([what, count]) => `${count} × ${what}`)
  if (wrong.length === 0) return
  throw new Void(`${title}: unexpected answers: ${[...wrong, ...(example === undefined ? [] : [example])].join(', ')}`)
}
