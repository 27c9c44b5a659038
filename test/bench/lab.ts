import { comparison } from './comparison.ts'
import type { Plan } from './measure.ts'
import type { Pairs } from './paired.ts'
import type { Generator } from './processes.ts'
import { measureVariants } from './variants.ts'

/** Measures petstore with the lab and without, in turns. No account has a fault. */
export async function measureLab (
  plan: Plan, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const variants = ['true', 'false'].map((value) => ({ name: `LAB=${value}`, environment: { LAB: value } }))
  const pairs: Pairs[] = []
  for (const database of plan.databases) {
    pairs.push(...await measureVariants(variants, plan, database, folder, generator, say))
  }
  console.log(`\nThe lab\n${comparison(pairs)}\nThe goal is at most 1.02 of the CPU time.`)
  return pairs
}
