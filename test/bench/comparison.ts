import type { Pairs, PairedSample } from './paired.ts'
import { columns, spread, times, type Spread } from './report.ts'

const MEASURES: Array<{ title: string, digits: number, value: (sample: PairedSample) => number }> = [
  { title: 'requests/s', digits: 0, value: ({ perSecond }) => perSecond },
  { title: 'p50 ms', digits: 2, value: ({ p50 }) => p50 },
  { title: 'p99 ms', digits: 2, value: ({ p99 }) => p99 },
  { title: 'CPU µs', digits: 1, value: ({ cpu }) => cpu }
]

/** Formats two sides and their ratio: the median of the rounds, in brackets the least and the most. */
export function comparison (pairs: Pairs[]): string {
  const [first = '', second = ''] = pairs[0]?.sides ?? []
  const head = ['', 'connections', ...MEASURES.flatMap(({ title }) => [`${title}: A`, 'B', 'A ÷ B'])]
  const lines = pairs.map((pair) => [
    `${pair.database} · ${pair.title}`,
    String(pair.connections),
    ...MEASURES.flatMap(({ digits, value }) => [
      valuesOf(pair, first, value).median.toFixed(digits),
      valuesOf(pair, second, value).median.toFixed(digits),
      times(ratioOf(pair, value))
    ])
  ])
  return `A: ${first}, B: ${second}\n${columns([head, ...lines])}`
}

function valuesOf ({ samples }: Pairs, side: string, value: (sample: PairedSample) => number): Spread {
  return spread(samples.filter((sample) => sample.side === side).map(value))
}

/** Returns the ratio of the first side to the second, round by round. */
export function ratioOf ({ sides, samples }: Pairs, value: (sample: PairedSample) => number): Spread {
  const [first, second] = sides.map((side) => samples.filter((sample) => sample.side === side).map(value))
  return spread(first!.map((number, i) => number / second![i]!))
}
