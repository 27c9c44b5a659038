import type { CommandSuccess } from './success.ts'
import type { Transaction } from '../group-commit/transaction.ts'
import { AccountRows, IdentityMap } from './account-rows.ts'
import { loadsOf } from './load.ts'
import { createdBy, savesOf } from './save.ts'
import type { Write } from './write.ts'

/**
 * Runs a write several times for an account within a command, such as one that fills a store. The results have the
 * events: the command passes them on, or drops them.
 *
 * @param account `null` for what has no account yet
 * @throws the error of a write that is refused
 */
export async function runWithin<Input, Record> (
  tx: Transaction, account: number | null, write: Write<Input, Record>, inputs: readonly Input[]
): Promise<Array<CommandSuccess<Record>>> {
  const { dialect } = tx
  const tables = tx.tables.map(({ name }) => name)
  const map = new IdentityMap()
  map.storedBytes = tx.storedBytes
  const needed = account === null ? [] : inputs.map((input) => ({ account, needs: write.needs?.(input) ?? [] }))
  const loads = loadsOf(dialect, tables, needed, createdBy(inputs.map(() => write)), map)
  const loaded = await tx.run(loads.map(({ statement }) => statement))
  loads.forEach(({ onRows }, i) => { onRows(loaded[i] as Array<{ [field: string]: unknown }>) })
  const rows = new AccountRows(map, account, tx.now(account))
  const successes = inputs.map((input) => write.decide(input, rows))
  await tx.run(savesOf(dialect, tables, map))
  return successes
}
