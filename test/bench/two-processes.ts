import { availableParallelism } from 'node:os'
import { comparison } from './comparison.ts'
import type { Plan } from './measure.ts'
import type { Pairs } from './paired.ts'
import type { Generator } from './processes.ts'
import { measureVariants } from './variants.ts'

const CORES = 4

/** Measures two processes of petstore on one PostgreSQL against one, with the same number of connections. */
export async function measureTwoProcesses (
  plan: Plan, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const variants = [{ name: 'two processes', processes: 2 }, { name: 'one process' }]
  const pairs = await measureVariants(variants, plan, 'postgresql', folder, generator, say)
  console.log(`\nTwo processes\n${comparison(pairs)}`)
  const cores = availableParallelism()
  console.log(cores < CORES
    ? `On ${cores} cores the goal is 0.9 of one process. What more cores give is not measured.`
    : `On ${cores} cores the goal is 1.5 times one process.`)
  return pairs
}
