// `npm run bench`: compares petstore with the same service on the bare drivers, and as Prisma's guides build it.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, release, tmpdir, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { measureAgainst } from './against.ts'
import { measureGrowth } from './growth.ts'
import { measureLab } from './lab.ts'
import { measureMemory, measureStart } from './long.ts'
import { measureManyAccounts } from './many-accounts.ts'
import { measure, type Plan, type Sample } from './measure.ts'
import { startGenerator } from './processes.ts'
import { summarise, table, verdicts } from './report.ts'
import { connectionsFor } from './requests.ts'
import { Void } from './rows.ts'
import { measureSlowDisk } from './slow-disk.ts'
import { measureTwoProcesses } from './two-processes.ts'
import { workloads } from './workloads.ts'

const HELP = `
npm run bench -- [options]

Compares petstore with the same service on the bare drivers (baseline), written as Prisma's guides
teach (prisma), and with petstore's framework around a constant answer (floor). Takes about two hours on an idle
machine. Stores are created in the system's folder for temporary files: set TMPDIR if that is not on a disk.

  --quick               about two minutes: SQLite, four workloads, two rounds; not for published figures
  --pets N              pets in the store (10000)
  --database NAME       sqlite or postgresql (both)
  --workload NAME       one of those below (all; repeatable)
  --rounds N            measurements of each server, interleaved (5)
  --seconds N           of each measurement (4)
  --connections N       at once, besides a single one: at least 2, at most a fifth of the pets (64)
  --help

Workloads:

${Object.entries(workloads).map(([name, { title }]) => `  ${name.padEnd(22)}${title}`).join('\n')}

  Of each workload, the run measures the connections at once, and a single one. It checks that every answer has
  the expected status, and that the rows agree with the answers.

  keyedOrder, keyedCreate  each request has a new Idempotency-Key
  patch                    each connection changes a pet of its own; If-Match is the ETag of the last answer
  cancel                   each connection places an order, then cancels it: requests/s and CPU are of both,
                           latency is of cancellations
  webhook                  the account has a webhook for order.placed; no server sends its deliveries
                           (DELIVERY=false), since a receiver would use the machine that is measured
  real                     of 100 requests 60 reads, 10 lists, 15 orders and 10 new pets with keys, 5 patches; a
                           tenth of the writes is refused: unknown pet or category, sold out, stale ETag

Instead of that:

  --against FOLDER      petstore and the version built in another folder, alternating
  --many-accounts       petstore with 1,001 accounts, without and with statistics of the planner
  --two-processes       two processes of petstore on one PostgreSQL, and one, alternating
  --lab                 petstore with the lab and without, and with a journal and without, alternating
  --slow-disk           reads beside writes on SQLite while each sync takes longer (Linux with a C compiler);
                        with --against, of the other version as well
  --memory [--seconds]  ten minutes of mixed load: resident size and write-ahead log of petstore
  --growth              petstore on 10,000 and on 1,000,000 pets, alternating: CPU per request
  --start               time from the start of petstore to /readyz
`

const options = parsed()

/** The major version of Node that the published figures are made with. */
const PUBLISHED_NODE = 24

const RESULTS = fileURLToPath(new URL('results', import.meta.url))

if (options.help) {
  console.log(HELP)
} else {
  await run().catch((error: unknown) => {
    console.error(error instanceof Void ? `\nThis run is void. ${error.message}` : error)
    process.exitCode = 1
  })
}

async function run (): Promise<void> {
  const plan = planned()
  const folder = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  const generator = startGenerator()
  process.once('SIGINT', () => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(130)
  })
  try {
    console.log(machineLine())
    const warning = nodeWarning()
    if (warning !== undefined) console.log(warning)
    if (options.start) await measureStart(plan, folder, say)
    else if (options.growth) await measureGrowth(plan, folder, generator, say)
    else if (options.memory) await measureMemory(plan, Number(options.seconds ?? 600), folder, generator, say)
    else await measureComparisons()
  } catch (error) {
    // The logs can show the reason.
    console.error(`\nThe servers' logs are kept in ${folder}`)
    throw error
  } finally {
    await generator.stop()
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })

  async function measureComparisons (): Promise<void> {
    const name = join(RESULTS, new Date().toISOString().replaceAll(':', '-').slice(0, 19))
    const result: Record<string, unknown> = { at: new Date().toISOString(), plan, machine: machine() }
    const other = options.against
    const isSection = options['slow-disk'] || options['many-accounts'] || options['two-processes'] || options.lab
    if (options['slow-disk']) result['slowDisk'] = await measureSlowDisk(plan, other, folder, generator, say)
    if (options['many-accounts']) result['manyAccounts'] = await measureManyAccounts(plan, folder, generator, say)
    if (options['two-processes']) result['twoProcesses'] = await measureTwoProcesses(plan, folder, generator, say)
    if (options.lab) result['lab'] = await measureLab(plan, folder, generator, say)
    if (!isSection && other === undefined) Object.assign(result, await measureServers(name))
    if (!isSection && other !== undefined) {
      result['against'] = await measureAgainst(plan, other, folder, generator, say)
    }
    mkdirSync(RESULTS, { recursive: true })
    writeFileSync(`${name}.json`, `${JSON.stringify(result, null, 1)}\n`)
    console.log(`\n${name}.json`)
  }

  async function measureServers (name: string): Promise<object> {
    const samples: Sample[] = []
    await measure(plan, folder, generator, (sample) => { samples.push(sample) }, say)
    const summary = summarise(samples)
    console.log(table(summary, plan))
    console.log(verdicts(summary, plan))
    mkdirSync(RESULTS, { recursive: true })
    // The chart's library is one of the tools, which `npm run types` does without.
    const file = '../tools/chart.ts'
    const { chart } = await import(file) as { chart: (...arguments_: [typeof summary, Plan]) => string }
    writeFileSync(`${name}.svg`, chart(summary, plan))
    console.log(`\n${name}.svg${nodeWarning() === undefined ? ' (copy it to results/chart.svg for docs/explanation/measurements.md)' : ''}`)
    return { summary, samples }
  }
}

function planned (): Plan {
  const { quick, database, workload, rounds, seconds, pets, connections } = options
  const databases = (['sqlite', 'postgresql'] as const).filter((name) => database === undefined || name === database)
  const plan = {
    databases: quick && database === undefined ? databases.slice(0, 1) : databases,
    workloads: workload ?? Object.keys(workloads).filter((name) => !quick || workloads[name]!.quick === true),
    pets: Number(pets),
    rounds: Number(rounds ?? (quick ? 2 : 5)),
    seconds: Number(seconds ?? (quick ? 1 : 4)),
    connections: Number(connections)
  }
  const unknown = plan.workloads.filter((name) => !(name in workloads))
  const numbers = [plan.pets, plan.rounds, plan.seconds, plan.connections]
  if (
    databases.length === 0 ||
    unknown.length > 0 ||
    numbers.some((number) => !(number > 0)) ||
    plan.pets < 1_000 ||
    plan.connections < 2 ||
    plan.connections > connectionsFor(plan.pets)
  ) {
    refuse(`These options are not valid.\n${HELP}`)
  }
  return plan
}

/** Overwrites one line on a terminal, and prints lines elsewhere. */
function say (text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
}

function machineLine (): string {
  return `Node ${process.version}, ${cpus()[0]?.model ?? process.arch}, ${availableParallelism()} cores, ${type()} ${release()}`
}

/** Says which figures must not be published, and how to make those that may. */
function nodeWarning (): string | undefined {
  if (process.versions.node.startsWith(`${PUBLISHED_NODE}.`)) return undefined
  return `The published figures are made with Node ${PUBLISHED_NODE}, so do not publish these. With Node ${PUBLISHED_NODE}:
  npx --yes --package=node@${PUBLISHED_NODE} -- npm run bench`
}

function machine (): object {
  return {
    node: process.version,
    system: `${type()} ${release()}`,
    processor: cpus()[0]?.model,
    cores: availableParallelism(),
    memory: totalmem()
  }
}

function parsed () {
  const options = {
    quick: { type: 'boolean', default: false },
    pets: { type: 'string', default: '10000' },
    database: { type: 'string' },
    workload: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    connections: { type: 'string', default: '64' },
    against: { type: 'string' },
    'many-accounts': { type: 'boolean', default: false },
    'two-processes': { type: 'boolean', default: false },
    lab: { type: 'boolean', default: false },
    'slow-disk': { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    growth: { type: 'boolean', default: false },
    start: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  } as const
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse (reason: string): never {
  console.error(reason)
  process.exit(2)
}
