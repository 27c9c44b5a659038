import { runCommand, type Command } from '../group-commit/command.ts'
import type { Transaction } from '../group-commit/transaction.ts'
import type { Table } from '../table.ts'
import { AccountRows, IdentityMap, type Row } from './account-rows.ts'
import { loadsOf, type AccountNeeds } from './load.ts'
import { createdBy, savesOf } from './save.ts'
import type { CommandSuccess } from './success.ts'
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
  const needed = account === null ? [] : inputs.map((input) => ({ account, needs: write.needs?.(input) ?? [] }))
  return await withRows(tx, account, needed, createdBy(inputs.map(() => write)), async (rows) =>
    inputs.map((input) => write.decide(input, rows)))
}

/** Runs a command for an account within another one. @throws its error if it is refused */
export async function performWithin<Input, Record> (
  tx: Transaction, account: number, command: Command<Input, Record>, input: Input
): Promise<CommandSuccess<Record>> {
  const needed = command.needs === undefined ? [] : [command.needs(input)]
  return await withRows(tx, account, needed, new Map(), async (rows) => {
    const [result] = await runCommand({ ...tx, rows: () => rows }, command, [input])
    if (result instanceof Error) throw result
    return result!
  })
}

/** Loads rows of an account, and saves what has changed at the end. */
async function withRows<Result> (
  tx: Transaction, account: number | null, needed: readonly AccountNeeds[], created: ReadonlyMap<Table, number>,
  use: (rows: AccountRows) => Promise<Result>
): Promise<Result> {
  const { dialect, tables } = tx
  const map = new IdentityMap()
  map.storedBytes = tx.storedBytes
  const loads = loadsOf(dialect, tables, needed, created, map)
  const loaded = await tx.run(loads.map(({ statement }) => statement))
  loads.forEach(({ onRows }, i) => { onRows(loaded[i] as Row[]) })
  const result = await use(new AccountRows(map, account, tx.now(account)))
  await tx.run(savesOf(dialect, tables, map))
  return result
}
