import type { Command, Entry, Rows } from './command.ts'
import type { Session } from './session.ts'

export interface Batch {
  command: Command<unknown, unknown>
  entries: Entry[]
}

/**
 * Puts a group's entries into batches of one command each, in order of arrival as far as anybody can
 * tell: an entry joins an earlier batch of its command only past batches that touch other rows.
 */
export function arrange (group: Entry[]): Batch[] {
  const batches: Array<Batch & { touched: Set<string> }> = []
  for (const entry of group) {
    const touched = touchedBy(entry)
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

function touchedBy ({ command, input }: Entry): string[] {
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
 * Locks every row that the group decides about before the first command runs: categories, pets, then
 * webhooks, each in id order. All groups of all processes do the same, so locks never cross. A pet's lock
 * stands for its inventory entry and its orders too. What the categories' locks show of them is kept.
 */
export async function lockRows (session: Session, group: Entry[]): Promise<void> {
  const { dialect, query } = session
  const rows = group.map(({ command, input }) => command.rows?.(input) ?? {})
  const ids = (name: keyof Rows): Array<{ id: number }> =>
    [...new Set(rows.flatMap((row) => row[name] ?? []))].map((id) => ({ id }))
  const input = dialect.inputs('i', { id: 'bigint' })

  const categories = ids('categories')
  const used = ids('usedCategories')
  if (categories.length + used.length > 0) {
    const lock = categories.length > 0 ? dialect.forUpdate : dialect.forKeyShare
    const held = await query<{ id: number, account: number }>(`
      SELECT c.id, c.account_id AS account FROM categories c WHERE ${dialect.isOneOf('c.id', `SELECT i.id FROM ${input}`)} ORDER BY c.id ${lock}`,
    [...categories, ...used])
    for (const { id, account } of held) session.categories.set(id, account)
  }
  if (dialect.forUpdate === '') return
  const pets = ids('pets')
  const orders = ids('orders')
  if (orders.length > 0) {
    const found = await query<{ id: number }>(`SELECT DISTINCT o.pet_id AS id FROM orders o WHERE ${dialect.isOneOf('o.id', `SELECT i.id FROM ${input}`)}`, orders)
    pets.push(...found)
  }
  if (pets.length > 0) {
    await query(`SELECT p.id FROM pets p WHERE ${dialect.isOneOf('p.id', `SELECT i.id FROM ${input}`)} ORDER BY p.id ${dialect.forUpdate}`, pets)
  }
  const webhooks = ids('webhooks')
  if (webhooks.length > 0) {
    await query(`SELECT w.id FROM webhooks w WHERE ${dialect.isOneOf('w.id', `SELECT i.id FROM ${input}`)} ORDER BY w.id ${dialect.forUpdate}`, webhooks)
  }
}
