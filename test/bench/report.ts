import type { DatabaseName } from '../../src/database/dialect.ts'
import type { Plan, Sample } from './measure.ts'
import { SERVERS, type ServerName } from './processes.ts'
import { workloads } from './workloads.ts'

/** The median, minimum and maximum of the rounds. */
export interface Spread { median: number, least: number, most: number }

export interface Figures {
  perSecond: Spread
  p50: Spread
  p99: Spread
  /** CPU time per request in µs, of the service alone, and of service and database together. */
  service: Spread
  cpu: Spread
}

/** Ratios of petstore to another server, round by round. Above 1, petstore is better. */
export interface Ratio {
  perSecond: Spread
  cpu: Spread
  /** The same after subtracting the time and CPU of floor from both. */
  net?: { perSecond: Spread, cpu: Spread }
}

export interface Summary {
  database: DatabaseName
  workload: string
  /** With many connections, and with one. */
  many: Record<ServerName, Figures>
  one: Record<ServerName, Figures>
  baseline: Ratio
  prisma: Ratio
  /** Petstore's latencies as multiples of another server's: with many connections the baseline's, with one each. */
  p99: Spread
  alone: { p50: Spread, p99: Spread, cpu: Spread, prisma: Spread }
  /** The load generator's largest share of a core. Above 0.9, only CPU time is comparable. */
  generator: number
}

const GENERATOR_LIMIT = 0.9
/** Limits of the latency with one connection, which shares with no other, as multiples of the baseline's. */
const ALONE_LIMITS = { read: 1.3, write: 1.5, p99: 2 }

export function summarise (samples: Sample[]): Summary[] {
  const cells = new Set(samples.map(({ database, workload }) => `${database} ${workload}`))
  return [...cells].map((cell) => {
    const all = samples.filter(({ database, workload }) => `${database} ${workload}` === cell)
    const many = all.filter(({ connections }) => connections > 1)
    const one = all.filter(({ connections }) => connections === 1)
    const { database, workload } = all[0]!
    return {
      database,
      workload,
      many: figures(many),
      one: figures(one),
      baseline: { ...ratio(many, 'baseline'), net: ratio(many, 'baseline', 'floor') },
      prisma: ratio(many, 'prisma'),
      p99: rounds(many, (of) => of('petstore').p99 / of('baseline').p99),
      alone: {
        p50: rounds(one, (of) => of('petstore').p50 / of('baseline').p50),
        p99: rounds(one, (of) => of('petstore').p99 / of('baseline').p99),
        cpu: rounds(one, (of) => cpuOf(of('petstore')) / cpuOf(of('baseline'))),
        prisma: rounds(one, (of) => of('petstore').p50 / of('prisma').p50)
      },
      generator: Math.max(...many.filter(({ server }) => server !== 'floor').map(({ generator }) => generator))
    }
  })
}

function figures (samples: Sample[]): Record<ServerName, Figures> {
  return Object.fromEntries(SERVERS.map((server) => {
    const own = samples.filter((sample) => sample.server === server)
    const spreadOf = (value: (sample: Sample) => number): Spread => spread(own.map(value))
    return [server, {
      perSecond: spreadOf(({ perSecond }) => perSecond),
      p50: spreadOf(({ p50 }) => p50),
      p99: spreadOf(({ p99 }) => p99),
      service: spreadOf(({ service }) => service),
      cpu: spreadOf(cpuOf)
    }]
  })) as Record<ServerName, Figures>
}

function ratio (samples: Sample[], other: ServerName, floor?: ServerName): { perSecond: Spread, cpu: Spread } {
  const net = (value: (sample: Sample) => number): Spread => rounds(samples, (of) => {
    const least = floor === undefined ? 0 : value(of(floor))
    return (value(of(other)) - least) / (value(of('petstore')) - least)
  })
  return { perSecond: net(({ perSecond }) => 1 / perSecond), cpu: net(cpuOf) }
}

function cpuOf ({ service, databaseCpu }: Sample): number {
  return service + (databaseCpu ?? 0)
}

function rounds (samples: Sample[], value: (of: (server: ServerName) => Sample) => number): Spread {
  const numbers = [...new Set(samples.map(({ round }) => round))]
  return spread(
    numbers.map((round) =>
      value((server) => samples.find((sample) => sample.round === round && sample.server === server)!)
    )
  )
}

export function spread (values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return {
    median: (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2,
    least: sorted[0]!,
    most: sorted.at(-1)!
  }
}

/** Formats the measurements, a line for each server and workload. */
export function table (summary: Summary[], { connections }: Plan): string {
  const lines = [
    [
      '',
      '',
      `requests/s (${connections})`,
      'p50 ms',
      'p99 ms',
      'CPU µs service',
      '+ database',
      'requests/s (1)',
      'p50 ms',
      'p99 ms',
      'CPU µs',
      'load'
    ]
  ]
  for (const { database, workload, many, one, generator } of summary) {
    for (const server of SERVERS) {
      const { perSecond, p50, p99, service, cpu } = many[server]
      const alone = one[server]
      lines.push([
        server === SERVERS[0] ? `${database} · ${workloads[workload]!.title}` : '',
        server,
        whole(perSecond),
        fixed(p50),
        fixed(p99),
        fixed(service, 1),
        fixed(cpu, 1),
        whole(alone.perSecond),
        fixed(alone.p50),
        fixed(alone.p99),
        fixed(alone.cpu, 1),
        server === SERVERS[0] ? `${Math.round(generator * 100)} %` : ''
      ])
    }
  }
  return `\n${columns(lines)}`
}

/** Formats the ratios with their spread, and whether they reach the targets. */
export function verdicts (summary: Summary[], plan: Plan): string {
  const notes = [
    'Medians of the rounds, in brackets the least and the most.',
    ...summary
      .filter(({ generator }) => generator > GENERATOR_LIMIT)
      .map(
        ({ database, workload }) =>
          `${database} · ${workloads[workload]!.title}: the load generator used more than 90 % of a core, so CPU per request alone decides.`
      ),
    ...(plan.rounds < 5 ? ['Fewer than five rounds decide no figure.'] : [])
  ]
  return `\n${crowd(summary, plan)}\n\n${alone(summary)}\n\n${notes.join('\n')}`
}

/** Formats the ratios with many connections. Above 1 petstore is better, except for p99. */
function crowd (summary: Summary[], { connections }: Plan): string {
  const lines = [[
    `${connections} connections: petstore against`,
    'baseline: requests/s', 'CPU', 'target', '', 'p99 (less is better)',
    'without the floor: requests/s', 'CPU', 'aim',
    'prisma: requests/s', 'CPU', 'target', ''
  ]]
  for (const { database, workload, baseline, p99, prisma, generator } of summary) {
    const { title, targets } = workloads[workload]!
    const reached = ({ perSecond, cpu }: Ratio, target: number | undefined): string[] => target === undefined
      ? ['', '']
      : [
          `≥ ${target}`,
          verdict(cpu.median >= target && (generator > GENERATOR_LIMIT || perSecond.median >= target))
        ]
    lines.push([
      `${database} · ${title}`,
      times(baseline.perSecond), times(baseline.cpu), ...reached(baseline, targets?.baseline[database]),
      times(p99),
      times(baseline.net!.perSecond), times(baseline.net!.cpu), String(targets?.net?.[database] ?? ''),
      times(prisma.perSecond), times(prisma.cpu), ...reached(prisma, targets?.prisma)
    ])
  }
  return columns(lines)
}

/** Formats the latencies with one connection as multiples of the baseline's: less is better. */
function alone (summary: Summary[]): string {
  const lines = [[
    'alone: petstore ÷ baseline', 'p50 ms', 'baseline', 'ratio', 'limit', '', 'p99 ms', 'baseline', 'ratio', 'limit',
    '', 'CPU', 'p50 ÷ prisma'
  ]]
  for (const { database, workload, one, alone } of summary) {
    const { title, isRead } = workloads[workload]!
    const limit = isRead ? ALONE_LIMITS.read : ALONE_LIMITS.write
    lines.push([
      `${database} · ${title}`,
      fixed(one.petstore.p50, 3), fixed(one.baseline.p50, 3), times(alone.p50), `≤ ${limit}`,
      verdict(alone.p50.median <= limit),
      fixed(one.petstore.p99), fixed(one.baseline.p99), times(alone.p99), `≤ ${ALONE_LIMITS.p99}`,
      verdict(alone.p99.median <= ALONE_LIMITS.p99),
      times(alone.cpu), times(alone.prisma)
    ])
  }
  return columns(lines)
}

function verdict (reached: boolean): string {
  return reached ? 'reached' : 'NOT REACHED'
}

export function times ({ median, least, most }: Spread): string {
  return `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`
}

function whole ({ median }: Spread): string {
  return String(Math.round(median))
}

function fixed ({ median }: Spread, digits = 2): string {
  return median.toFixed(digits)
}

/** Aligns the first column to the left and numbers to the right. */
export function columns (lines: string[][]): string {
  const widths = lines[0]!.map((_, i) => Math.max(...lines.map((line) => line[i]!.length)))
  return lines
    .map((line) =>
      line
        .map((cell, i) => (i < 2 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
        .join('  ')
        .trimEnd()
    )
    .join('\n')
}
