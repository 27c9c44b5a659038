import { comparison } from './comparison.ts'
import type { Plan } from './measure.ts'
import type { Pairs } from './paired.ts'
import type { Generator } from './processes.ts'
import { measureVariants, type Variant } from './variants.ts'

/** How many requests the journal keeps. */
const KEEP = 1_000

const COMPARED: Array<{ title: string, goal: number, variants: Variant[] }> = [
  {
    title: 'The lab, of which no account uses anything',
    goal: 1.02,
    variants: ['true', 'false'].map((value) => ({ name: `LAB=${value}`, environment: { LAB: value } }))
  },
  {
    title: `A journal that keeps ${KEEP} requests`,
    goal: 1.25,
    variants: [
      {
        name: 'journal',
        environment: { LAB: 'true' },
        sql: `INSERT INTO journals (account_id, keep) SELECT id, ${KEEP} FROM accounts`
      },
      { name: 'no journal', environment: { LAB: 'true' } }
    ]
  }
]

/** Measures petstore with the lab and without, and with a journal and without, in turns. */
export async function measureLab (
  plan: Plan, folder: string, generator: Generator, say: (text: string) => void
): Promise<Pairs[]> {
  const measured: Pairs[] = []
  for (const { title, goal, variants } of COMPARED) {
    const pairs: Pairs[] = []
    for (const database of plan.databases) {
      pairs.push(...await measureVariants(variants, plan, database, folder, generator, say))
    }
    console.log(`\n${title}\n${comparison(pairs)}\nThe goal is at most ${goal} of the CPU time.`)
    measured.push(...pairs)
  }
  return measured
}
