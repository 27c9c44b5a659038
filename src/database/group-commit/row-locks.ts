import type { Command, QueuedCommand, Rows } from './command.ts'
import type { InputType } from '../dialect.ts'
import type { Table } from '../sql/bulk-insert.ts'
import { idsOf, type Transaction } from './transaction.ts'

export interface Batch {
  command: Command<unknown, unknown>
  entries: QueuedCommand[]
}

/**
 * Puts a group's entries into batches of one command each, in order of arrival as far as anybody can
 * tell: an entry joins an earlier batch of its command only past batches that touch other rows.
 */
export function orderIntoBatches (group: QueuedCommand[]): Batch[] {
  const [first] = group
  if (first !== undefined && group.every(({ command }) => command === first.command)) return [{ command: first.command, entries: group }]
  const batches: Array<Batch & { touched: Set<string> }> = []
  for (const entry of group) {
    const touched = lockKeys(entry)
    let home: typeof batches[number] | undefined
    for (let i = batches.length - 1; i >= 0; i--) {
      const batch = batches[i]!
      if (batch.command === entry.command) {
        home = batch
        break
      }
      if (touched.some((row) => batch.touched.has(row))) break
    }
    if (home === undefined) {
      home = { command: entry.command, entries: [], touched: new Set() }
      batches.push(home)
    }
    home.entries.push(entry)
    for (const row of touched) home.touched.add(row)
  }
  return batches
}

function lockKeys ({ command, input }: QueuedCommand): string[] {
  const { categories = [], usedCategories = [], pets = [], orders = [], webhooks = [] } = command.rows?.(input) ?? {}
  return [
    ...categories.map((id) => `category ${id}`),
    ...usedCategories.map((id) => `category ${id}`),
    ...pets.map((id) => `pet ${id}`),
    ...orders.map((id) => `order ${id}`),
    ...webhooks.map((id) => `webhook ${id}`)
  ]
}

/**
 * Prepares a group, in one statement: locks every row that it decides about before the first command runs,
 * categories, pets, then webhooks, each in id order, and takes the ids of its new rows. All groups of all processes
 * do the same, so locks never cross. A pet's lock stands for its inventory entry and its orders too. What the
 * categories' locks show of them is kept.
 */
export async function lockRowsAndAllocateIds ({ dialect, query, categories, ids }: Transaction, group: QueuedCommand[]): Promise<void> {
  const wanted = rowsOf(group)
  const all = (name: keyof Rows): Array<{ id: number }> => Array.from(wanted[name], (id) => ({ id }))
  const locks: string[] = []
  const parts: string[] = []
  const inputs: object[][] = []
  const input = (list: object[], columns: Record<string, InputType>): string => dialect.jsonRows('i', columns, inputs.push(list))
  const oneOf = (list: object[]): string => `SELECT i.id FROM ${input(list, { id: 'bigint' })}`

  const changed = all('categories')
  const used = all('usedCategories')
  if (changed.length + used.length > 0) {
    locks.push(`held_categories AS MATERIALIZED (
      SELECT c.id, c.account_id FROM categories c WHERE ${dialect.inSubquery('c.id', oneOf([...changed, ...used]))} ORDER BY c.id
      ${changed.length > 0 ? dialect.forUpdate : dialect.forKeyShare})`)
    parts.push("SELECT 'category' AS kind, id, account_id AS value FROM held_categories")
  }
  const lock = (name: string, of: string): void => {
    locks.push(`held_${name} AS MATERIALIZED (SELECT r.id FROM ${name} r WHERE ${dialect.inSubquery('r.id', of)} ORDER BY r.id ${dialect.forUpdate})`)
    // Whoever does not read them does not lock them. UNION ALL reads its parts one after the other.
    parts.push(`SELECT 'lock' AS kind, count(*) AS id, 0 AS value FROM held_${name}`)
  }
  if (dialect.forUpdate !== '') {
    const pets = all('pets')
    const orders = all('orders')
    const ofOrders = (): string => `SELECT o.pet_id FROM orders o WHERE ${dialect.inSubquery('o.id', oneOf(orders))}`
    if (pets.length + orders.length > 0) lock('pets', orders.length > 0 ? `${oneOf(pets)} UNION ${ofOrders()}` : oneOf(pets))
    const webhooks = all('webhooks')
    if (webhooks.length > 0) lock('webhooks', oneOf(webhooks))
  }
  // In one order always: a statement's text is prepared once.
  for (const [{ name, id }, count] of [...newRows(group)].sort(([a], [b]) => a.name < b.name ? -1 : 1)) {
    parts.push(`SELECT '${name}' AS kind, first AS id, last AS value FROM (${dialect.allocateIds(name, id, input([{ count }], { count: 'bigint' }))}) AS new_${name}`)
  }
  if (parts.length === 0) return

  const prepared = await query<Prepared>(`${locks.length > 0 ? `WITH ${locks.join(', ')}` : ''} ${parts.join(' UNION ALL ')}`, ...inputs)
  for (const { kind, id, value } of prepared.sort((a, b) => a.id - b.id)) {
    if (kind === 'category') categories.set(id, value)
    else if (kind !== 'lock') ids.set(kind, [...ids.get(kind) ?? [], ...idsOf({ first: id, last: value })])
  }
}

interface Prepared {
  /** `category`, `lock`, or the table of new ids. */
  kind: string
  /** The category's, or the first new one. */
  id: number
  /** The category's account, or the last new id. */
  value: number
}

/** The rows of all the group's commands. */
function rowsOf (group: QueuedCommand[]): Record<keyof Rows, Set<number>> {
  const all = { categories: new Set<number>(), usedCategories: new Set<number>(), pets: new Set<number>(), orders: new Set<number>(), webhooks: new Set<number>() }
  for (const { command, input } of group) {
    const rows = command.rows?.(input)
    for (const name in rows) for (const id of rows[name as keyof Rows] ?? []) all[name as keyof Rows].add(id)
  }
  return all
}

/** How many rows the group may make in each table. */
function newRows (group: QueuedCommand[]): Map<Table, number> {
  const counts = new Map<Table, number>()
  for (const { command: { creates } } of group) {
    if (creates !== undefined) counts.set(creates, (counts.get(creates) ?? 0) + 1)
  }
  return counts
}
