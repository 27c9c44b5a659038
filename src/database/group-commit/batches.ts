import type { Command, QueuedCommand } from './command.ts'

/** Entries of one command that run together. */
export interface Batch {
  command: Command<unknown, unknown>
  entries: QueuedCommand[]
}

/**
 * Orders a group's entries into batches of one command each, in order of arrival as far as a client can observe it:
 * an entry joins an earlier batch of its command only past batches that lock other rows. Likewise, a batch whose first
 * statement can travel with the row locks comes first.
 */
export function orderIntoBatches (group: QueuedCommand[]): Batch[] {
  const [first] = group
  if (first !== undefined && group.every(({ command }) => command === first.command)) {
    return [{ command: first.command, entries: group }]
  }
  const batches: LockingBatch[] = []
  for (const entry of group) {
    const rows = lockKeys(entry)
    const batch = joinableBatch(batches, entry, rows) ?? { command: entry.command, entries: [], locked: new Set() }
    if (batch.entries.length === 0) batches.push(batch)
    batch.entries.push(entry)
    for (const row of rows) batch.locked.add(row)
  }
  const prefetching = batches.findIndex((batch, i) =>
    batch.command.prefetch !== undefined && batches.slice(0, i).every((earlier) => !locksSameRow(earlier, batch)))
  return prefetching > 0 ? [batches[prefetching]!, ...batches.toSpliced(prefetching, 1)] : batches
}

function locksSameRow (a: LockingBatch, b: LockingBatch): boolean {
  for (const row of a.locked) if (b.locked.has(row)) return true
  return false
}

interface LockingBatch extends Batch { locked: Set<string> }

function joinableBatch (
  batches: LockingBatch[], { command }: QueuedCommand, rows: string[]
): LockingBatch | undefined {
  for (const batch of batches.toReversed()) {
    if (batch.command === command) return batch
    if (rows.some((row) => batch.locked.has(row))) return undefined
  }
  return undefined
}

function lockKeys ({ command, input }: QueuedCommand): string[] {
  return (command.locks?.(input) ?? []).flatMap(({ table, ids, through }) =>
    ids.map((id) => `${(through?.table ?? table).name} ${id}`))
}
