import { readdirSync, readFileSync } from 'node:fs'
import type { Write } from '../../src/database/unit-of-work/write.ts'

const SRC = new URL('../../src/', import.meta.url)

/** Returns every write that a file of `src` declares and exports, so that tests know of a new one. */
export async function allWrites (): Promise<Array<Write<unknown, unknown>>> {
  const writes: Array<Write<unknown, unknown>> = []
  for (const file of readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    const names = [...readFileSync(new URL(file, SRC), 'utf8').matchAll(/^(?:export )?const (\w+): Write</gm)]
    if (names.length === 0) continue
    const exported = await import(`../../src/${file}`) as Record<string, Write<unknown, unknown>>
    for (const [, name] of names) {
      const write = exported[name!]
      if (write === undefined) throw new Error(`src/${file} does not export the write ${name}: no test can list it`)
      writes.push(write)
    }
  }
  return writes
}
