import { LRUCache } from 'lru-cache'
import type { Dialect, InputType } from '../dialect.ts'
import type { Table } from '../table.ts'
import type { RowLock } from './command.ts'
import type { QueuedPerform } from './group-transaction.ts'
import { idsOf, type Transaction } from './transaction.ts'

/** All row locks of a group on one table. */
interface TableLocks {
  table: RowLock['table']
  direct: Set<number>
  /** Ids in other tables, by the table and the column that holds the ids of the rows to lock. */
  through: Map<string, { link: NonNullable<RowLock['through']>, ids: Set<number> }>
  /** At least one command changes rows; then all of them are locked for that. */
  changesRows: boolean
  /** At least one command refers to rows, and so needs to know whose they are. */
  needsOwners: boolean
}

/** How the accounts of a group's writers are locked. */
type AccountLock = 'none' | 'key share' | 'update'

/**
 * A row of the one statement: a writer's account and how far its clock is ahead, in seconds; the owner of a locked row,
 * the end of a lock, or new ids.
 */
type ResultRow =
  | { kind: 'account', table: string, first: number, second: number }
  | { kind: 'owner', table: string, first: number, second: number }
  | { kind: 'locked', table: string, first: number, second: number }
  | { kind: 'ids', table: string, first: number, second: number }

/**
 * Locks the accounts whose rows the group writes and all rows that its commands declare, and allocates ids for new
 * rows, in one statement. Accounts come first, then tables in registration order, each with its rows in id order, in
 * every process, so lock acquisition cannot deadlock. A row that is locked stands for its children too: a pet for its
 * inventory entry and its orders.
 *
 * Adds the accounts to `tx.lockedAccounts`, but those that are deleted.
 */
export async function lockRowsAndAllocateIds (tx: Transaction, group: QueuedPerform[]): Promise<void> {
  const { dialect, query, tables, lockedAccounts } = tx
  const accounts = new Set(group.flatMap(({ command, input, context: { account } }) =>
    [...account === null ? [] : [account], ...command.accounts?.(input) ?? []]))
  const accountLock = accounts.size === 0
    ? 'none'
    : group.some(({ command }) => command.locksAccount) ? 'update' : 'key share'
  const locks = sortByRegistration(locksOf(group), tables)
    .filter(({ needsOwners }) => dialect.hasRowLocks || needsOwners)
  const created = newRowCounts(group)
  if (accountLock === 'none' && locks.length === 0 && created.length === 0) return

  const inputs = [
    ...accountLock === 'none' ? [] : [Array.from(accounts, (id) => ({ id }))],
    ...locks.flatMap(({ direct, through }) => [direct, ...[...through.values()].map(({ ids }) => ids)])
      .map((ids) => Array.from(ids, (id) => ({ id }))),
    ...created.map(([, count]) => [{ count }])
  ]
  const text = textOf(dialect, accountLock, locks, created.map(([table]) => table))
  const rows = await query<ResultRow>(text, ...inputs)
  for (const { kind, table, first, second } of rows.sort((a, b) => a.first - b.first)) {
    if (kind === 'account') {
      tx.confirmClock(first, second * 1000)
      lockedAccounts.add(first)
    } else if (kind === 'owner') tx.owners({ name: table }).set(first, second)
    else if (kind === 'ids') tx.addAllocatedIds({ name: table }, idsOf({ first, last: second }))
  }
}

/** The texts by what they lock and allocate. Clients choose the combinations of commands, so the last ones are kept. */
const texts = new LRUCache<string, string>({ max: 500 })

function textOf (dialect: Dialect, accountLock: AccountLock, locks: TableLocks[], created: Table[]): string {
  const parts = locks.map(({ table, through, changesRows, needsOwners }) =>
    [table.name, changesRows, needsOwners, ...through.keys()].join(' '))
  const key = [dialect.name, accountLock, ...parts, ...created.map(({ name }) => name)].join(', ')
  let text = texts.get(key)
  if (text === undefined) {
    text = buildText(dialect, accountLock, locks, created)
    texts.set(key, text)
  }
  return text
}

function buildText (dialect: Dialect, accountLock: AccountLock, locks: TableLocks[], created: Table[]): string {
  let parameters = 0
  const input = (columns: Record<string, InputType>): string => dialect.jsonRows('i', columns, ++parameters)
  const ctes: string[] = []
  const parts: string[] = []
  // Without locks, the parts may run in any order, and SQLite is much faster without the intermediate tables.
  const materialized = dialect.hasRowLocks ? 'MATERIALIZED' : ''
  if (accountLock !== 'none') {
    const writers = 'locked_writers'
    ctes.push(`${writers} AS ${materialized} (${accountLockSql(dialect, accountLock, input({ id: 'bigint' }))})`)
    parts.push(`SELECT 'account' AS kind, 'accounts' AS "table", id AS first, ahead AS second FROM ${writers}`)
  }
  for (const { table, needsOwners, ...lock } of locks) {
    const { name } = table
    ctes.push(`locked_${name} AS ${materialized} (${lockSql(dialect, table, lock, input)})`)
    // PostgreSQL evaluates a CTE only as far as it is read, so each must be selected from. UNION ALL runs its branches
    // in order.
    parts.push(needsOwners
      ? `SELECT 'owner' AS kind, '${name}' AS "table", id AS first, account_id AS second FROM locked_${name}`
      : `SELECT 'locked' AS kind, '${name}' AS "table", count(*) AS first, 0 AS second FROM locked_${name}`)
  }
  for (const { name, id } of created) {
    parts.push(`SELECT 'ids' AS kind, '${name}' AS "table", first, last AS second FROM (${
      dialect.allocateIds(name, id, input({ count: 'bigint' }))}) AS new_${name}`)
  }
  const cte = ctes.length > 0 ? `WITH ${ctes.join(', ')}` : ''
  return `${cte} ${parts.join(' UNION ALL ')}`
}

/** PostgreSQL evaluates the condition again after it waited for a lock: an account that was deleted is not found. */
function accountLockSql (dialect: Dialect, lock: AccountLock, input: string): string {
  return `
    SELECT a.id, a.clock_offset_seconds AS ahead
    ${dialect.fromByIds('accounts', 'a', 'id', `SELECT i.id FROM ${input}`)} AND a.deleted_at IS NULL
    ${inOrder(dialect, 'a.id', lock === 'update')}`
}

function lockSql (
  dialect: Dialect, table: RowLock['table'], { through, changesRows }: Pick<TableLocks, 'through' | 'changesRows'>,
  input: (columns: Record<string, InputType>) => string
): string {
  const ids = (): string => `SELECT i.id FROM ${input({ id: 'bigint' })}`
  const wanted = [ids(), ...[...through.values()].map(({ link }) =>
    `SELECT l.${link.column} AS id FROM ${link.table.name} l WHERE ${dialect.inSubquery(`l.${link.table.id}`, ids())}`)]
  return `
    SELECT r.${table.id} AS id, r.account_id
    ${dialect.fromByIds(table.name, 'r', table.id, wanted.join(' UNION '))}
    ${inOrder(dialect, `r.${table.id}`, changesRows)}`
}

function inOrder (dialect: Dialect, id: string, forUpdate: boolean): string {
  return dialect.hasRowLocks ? `ORDER BY ${id} ${forUpdate ? dialect.forUpdate : dialect.forKeyShare}` : ''
}

function locksOf (group: QueuedPerform[]): TableLocks[] {
  const byTable = new Map<string, TableLocks>()
  for (const { command, input } of group) {
    for (const { table, ids, mode, through } of command.locks?.(input) ?? []) {
      if (ids.length === 0) continue
      const locks = byTable.get(table.name) ??
        { table, direct: new Set(), through: new Map(), changesRows: false, needsOwners: false }
      byTable.set(table.name, locks)
      locks.changesRows ||= mode === 'update'
      locks.needsOwners ||= mode === 'key share'
      const target = through === undefined ? locks.direct : linkedIds(locks, through)
      for (const id of ids) target.add(id)
    }
  }
  return [...byTable.values()]
}

function linkedIds ({ through }: TableLocks, link: NonNullable<RowLock['through']>): Set<number> {
  const key = `${link.table.name}.${link.column}`
  const linked = through.get(key) ?? { link, ids: new Set() }
  through.set(key, linked)
  return linked.ids
}

/** @throws when a table is not registered */
function sortByRegistration (locks: TableLocks[], tables: readonly Table[]): TableLocks[] {
  const positions = new Map(locks.map(({ table: { name } }) =>
    [name, tables.findIndex((table) => table.name === name)]))
  for (const [name, position] of positions) {
    if (position < 0) throw new Error(`rows of ${name} cannot be locked: no resource registers this table`)
  }
  return locks.sort((a, b) => positions.get(a.table.name)! - positions.get(b.table.name)!)
}

/** Returns how many rows the group creates in each table at most, in one order always: a text is prepared once. */
function newRowCounts (group: QueuedPerform[]): Array<[Table, number]> {
  const counts = new Map<Table, number>()
  for (const { command: { creates } } of group) {
    if (creates !== undefined) counts.set(creates, (counts.get(creates) ?? 0) + 1)
  }
  return [...counts].sort(([a], [b]) => a.name < b.name ? -1 : 1)
}
