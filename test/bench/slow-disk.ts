import { join, resolve } from 'node:path'
import { buildFsyncDelay, fsyncDelay } from '../support/fsync-delay.ts'
import type { Load } from './load.ts'
import type { Plan } from './measure.ts'
import { checkAnswers } from './paired.ts'
import { builtIn, startGenerator, startServer, type Generator, type Server } from './processes.ts'
import { columns, spread } from './report.ts'
import { openStores, type Stores } from './stores.ts'

/** The delays of the disk in ms. */
const DELAYS = [0, 2, 5]

/** Each reader sends a request at this interval, in ms. */
const READ_EVERY_MS = 3
const READERS = 16
const WRITERS = 16

/** The limits of a read with the second delay: in ms, or as multiples of the time of /livez alone. */
const P50_LIMIT = 0.7
const P99_LIMIT = 5
const RATIO_LIMIT = 3

interface SlowSample { side: string, delay: number, work: string, load: Load, writes: number }

/**
 * Measures reads beside writes on SQLite, while each sync of the disk takes longer. Clouds have disks that take 1 to 5
 * ms; this one's own time comes on top.
 */
export async function measureSlowDisk (
  plan: Plan, other: string | undefined, folder: string, generator: Generator, say: (text: string) => void
): Promise<SlowSample[]> {
  const library = buildFsyncDelay(folder)
  if (library === undefined) {
    console.log('\nThe slow disk needs Linux and a C compiler (cc). It was not measured.')
    return []
  }
  const commands: Array<[string, string[] | undefined]> = [['petstore', undefined], ['baseline', undefined]]
  if (other !== undefined) commands.splice(1, 0, ['other', builtIn(resolve(other))])
  const samples: SlowSample[] = []
  const writers = startGenerator()
  const stores = await openStores('sqlite', join(folder, 'slow'), plan)
  try {
    for (const delay of DELAYS) {
      for (let round = 1; round <= plan.rounds; round++) {
        for (const [side, command] of commands) {
          const store = await stores.copy(`slow-${side}`)
          const server = await startServer(
            side === 'baseline' ? 'baseline' : 'petstore', store.url, join(folder, `${side}.log`), {
              ...(command === undefined ? {} : { command }),
              environment: fsyncDelay(library, delay)
            })
          try {
            samples.push(...await measureServer(server, side, delay, stores, { plan, round, generator, writers }))
          } finally {
            await server.stop()
            await store.remove()
          }
        }
        say(`slow disk · ${delay} ms · round ${round} of ${plan.rounds}`)
      }
    }
  } finally {
    await writers.stop()
    await stores.close()
  }
  console.log(slowTable(samples, commands.map(([side]) => side)))
  return samples
}

interface Turn { plan: Plan, round: number, generator: Generator, writers: Generator }

async function measureServer (
  server: Server, side: string, delay: number, stores: Stores,
  { plan: { seconds }, round, generator, writers }: Turn
): Promise<SlowSample[]> {
  const job = { ports: [server.port], scopes: stores.scopes, seed: round }
  const readers = { ...job, connections: READERS, everyMs: READ_EVERY_MS }
  await writers.run({ ...job, workload: 'create', connections: WRITERS, seconds: 1 })
  await generator.run({ ...readers, workload: 'get', seconds: seconds / 2 })
  const samples: SlowSample[] = []
  if (side === 'petstore') {
    const load = await generator.run({ ...readers, workload: 'livez', seconds: seconds / 2 })
    samples.push({ side, delay, work: 'livez alone', load, writes: 0 })
  }
  for (const workload of ['spread', 'create']) {
    const writing = writers.run({ ...job, workload, connections: WRITERS, seconds: seconds + 0.4 })
    const load = await generator.run({ ...readers, workload: 'get', seconds })
    const written = await writing
    for (const answers of [load, written]) checkAnswers(answers, `${side}, ${workload}`)
    const writes = written.requests / written.seconds
    samples.push({ side, delay, work: `get beside ${workload}`, load, writes })
  }
  return samples
}

function slowTable (samples: SlowSample[], sides: string[]): string {
  const head = ['slow disk (SQLite)', 'fsync +', ...sides.flatMap((side) => [`${side}: p50 ms`, 'p99 ms', 'writes/s']), '']
  const lines = DELAYS.flatMap((delay) =>
    ['livez alone', 'get beside spread', 'get beside create'].map((work) => {
      const figures = sides.map((side) => {
        const own = samples.filter((sample) => sample.side === side && sample.delay === delay && sample.work === work)
        if (own.length === 0) return undefined
        return {
          p50: spread(own.map(({ load }) => load.p50)).median,
          p99: spread(own.map(({ load }) => load.p99)).median,
          writes: spread(own.map(({ writes }) => writes)).median
        }
      })
      const [petstore] = figures
      const isGoal = delay === DELAYS[1] && work !== 'livez alone'
      return [
        work,
        `${delay} ms`,
        ...figures.flatMap((figure) => figure === undefined
          ? ['', '', '']
          : [figure.p50.toFixed(2), figure.p99.toFixed(2), figure.writes === 0 ? '' : figure.writes.toFixed(0)]),
        isGoal ? (isReached(petstore!, samples) ? 'reached' : 'NOT REACHED') : ''
      ]
    }))
  return `\n${columns([head, ...lines])}\nGoal with + ${DELAYS[1]} ms: p50 ≤ ${P50_LIMIT} ms and p99 ≤ ${P99_LIMIT} ms, or both ` +
    `≤ ${RATIO_LIMIT} times those of /livez alone.`
}

function isReached ({ p50, p99 }: { p50: number, p99: number }, samples: SlowSample[]): boolean {
  const alone = samples.filter(({ work, delay }) => work === 'livez alone' && delay === DELAYS[1])
  const livez = {
    p50: spread(alone.map(({ load }) => load.p50)).median,
    p99: spread(alone.map(({ load }) => load.p99)).median
  }
  return (p50 <= P50_LIMIT && p99 <= P99_LIMIT) ||
    (p50 <= RATIO_LIMIT * livez.p50 && p99 <= RATIO_LIMIT * livez.p99)
}
