import type { Command, QueuedCommand } from './command.ts'

/** Entries of one command that run together. */
export interface Batch {
  command: Command<unknown, unknown>
  entries: QueuedCommand[]
}

/**
 * Orders a group's entries into batches of one command each, in order of arrival as far as a client can observe it:
 * an entry joins an earlier batch of its command only past batches that lock other rows.
 */
export function orderIntoBatches (group: QueuedCommand[]): Batch[] {
  const [first] = group
  if (first !== undefined && group.every(({ command }) => command === first.command)) {
    return [{ command: first.command, entries: group }]
  }
  const batches: Array<Batch & { locked: Set<string> }> = []
  for (const entry of group) {
    const rows = lockKeys(entry)
    const batch = joinableBatch(batches, entry, rows) ?? { command: entry.command, entries: [], locked: new Set() }
    if (batch.entries.length === 0) batches.push(batch)
    batch.entries.push(entry)
    for (const row of rows) batch.locked.add(row)
  }
  return batches
}

function joinableBatch<B extends Batch & { locked: Set<string> }> (
  batches: B[], { command }: QueuedCommand, rows: string[]
): B | undefined {
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
