import { needsOf, runCommand, type Command } from '../group-commit/command.ts'
import type { Transaction } from '../group-commit/transaction.ts'
import { AccountRows, IdentityMap, type Row } from './account-rows.ts'
import { loadsOf } from './load.ts'
import { createdBy, savesOf } from './save.ts'
import type { CommandSuccess } from './success.ts'
import type { Write } from './write.ts'

/**
 * Runs a write or a command several times for an account within another command, such as one that fills a store. The
 * results have the events: the other command passes them on, or drops them.
 *
 * @param account `null` for what has no account yet
 * @throws the error of an input that is refused
 */
export async function runWithin<Input, Record> (
  tx: Transaction, account: number | null, command: Write<Input, Record> | Command<Input, Record>, inputs: Input[]
): Promise<Array<CommandSuccess<Record>>> {
  const { dialect, tables } = tx
  const map = new IdentityMap()
  map.storedBytes = tx.storedBytes
  const needed = inputs.flatMap((input) => needsOf(command, input, account))
  const created = createdBy('decide' in command ? inputs.map(() => command) : [])
  const loads = loadsOf(dialect, tables, needed, created, map)
  const loaded = await tx.run(loads.map(({ statement }) => statement))
  loads.forEach(({ onRows }, i) => { onRows(loaded[i] as Row[]) })
  const rows = new AccountRows(map, account, tx.now(account))
  const results = 'decide' in command
    ? inputs.map((input) => command.decide(input, rows))
    : await runCommand({ ...tx, rows: () => rows }, command, inputs)
  for (const result of results) if (result instanceof Error) throw result
  await tx.run(savesOf(dialect, tables, map))
  return results as Array<CommandSuccess<Record>>
}
