import { getOrAdd } from '../get-or-add.ts'
import { nextVersion } from '../record.ts'
import { completeRow, type Table } from '../table.ts'
import { bytesOfRow, type StoredBytes } from './stored-bytes.ts'

export type Row = Record<string, unknown>
type Id = number | string

/** Values by field. */
export type Values = { [field: string]: number | string | boolean }

/** A row as it is stored, and as the writes of the group have left it; `undefined` where there is none. */
export interface Entry {
  stored: Row | undefined
  current: Row | undefined
}

/**
 * The rows that the writes of a group have loaded or created: each row is one object for all of them, so a write sees
 * what the ones before it have changed.
 */
export class IdentityMap {
  readonly tables = new Map<Table, Map<Id, Entry>>()
  readonly #newIds = new Map<Table, number[]>()
  /** Takes back what the current write has done, last step first. */
  #undo: Array<() => void> = []
  /** Gets what the rows add to the bytes of their accounts, once the accounts are loaded. */
  storedBytes: StoredBytes | undefined

  entriesOf (table: Table): Map<Id, Entry> {
    return getOrAdd(this.tables, table, () => new Map<Id, Entry>())
  }

  addLoaded (table: Table, rows: readonly Row[]): void {
    const entries = this.entriesOf(table)
    for (const row of rows) entries.set(row[table.id] as Id, { stored: row, current: row })
  }

  addIds (table: Table, ids: number[]): void {
    this.#newIds.set(table, ids)
  }

  takeId (table: Table): number {
    const id = this.#newIds.get(table)?.shift()
    if (id === undefined) throw new Error(`a write created more rows in ${table.name} than it declares`)
    return id
  }

  set (table: Table, id: Id, current: Row | undefined): void {
    const entries = this.entriesOf(table)
    const before = entries.get(id)
    entries.set(id, { stored: before?.stored, current })
    const { accountId } = (current ?? before?.current ?? {}) as { accountId?: number }
    const bytes = bytesOfRow(table, current) - bytesOfRow(table, before?.current)
    if (accountId !== undefined) this.storedBytes?.add(accountId, bytes)
    this.#undo.push(() => {
      if (accountId !== undefined) this.storedBytes?.add(accountId, -bytes)
      if (before === undefined) entries.delete(id)
      else entries.set(id, before)
    })
  }

  /** Runs a write. If it throws, nothing of it is left, except that its new ids are used. */
  attempt<Result> (work: () => Result): Result {
    this.#undo = []
    try {
      return work()
    } catch (error) {
      for (const undo of this.#undo.reverse()) undo()
      throw error
    }
  }
}

/** What a write may see and change: rows of its account that it, or another write of the account, has declared. */
export class AccountRows {
  readonly #map: IdentityMap
  readonly #account: number | null
  /** The time of the account: RFC 3339 in UTC with milliseconds. */
  readonly now: string

  constructor (map: IdentityMap, account: number | null, now: string) {
    this.#map = map
    this.#account = account
    this.now = now
  }

  /** Returns a row by its id. */
  get<R extends object> (table: Table<R>, id: Id): Readonly<R> | undefined {
    const row = this.#map.entriesOf(table).get(id)?.current
    return row?.['accountId'] === this.#account ? row as R : undefined
  }

  /** Returns all rows that `all` has loaded, with those that were created since. */
  all<R extends object> (table: Table<R>): Array<Readonly<R>> {
    const rows: R[] = []
    for (const { current } of this.#map.entriesOf(table).values()) {
      if (current?.['accountId'] === this.#account) rows.push(current as R)
    }
    return rows
  }

  /** Returns whether there are rows with these values: those that `children` has declared. */
  has<R extends object> (table: Table<R>, where: Values): boolean {
    const wanted = Object.entries(where)
    for (const { current } of this.#map.entriesOf(table).values()) {
      if (current?.['accountId'] !== this.#account) continue
      if (wanted.every(([field, value]) => current[field] === value)) return true
    }
    return false
  }

  /**
   * Creates a row. Members without a value get the default of the model, or null.
   *
   * @param fields its id as well, where no sequence gives it
   */
  insert<R extends object> (table: Table<R>, fields: Partial<R>): R {
    const row = completeRow(table, fields)
    row[table.id] ??= this.#map.takeId(table)
    // Only a sign-up creates rows of another account than its own: it has none yet.
    if (this.#account !== null) row['accountId'] = this.#account
    this.#map.set(table, row[table.id] as Id, row)
    return row as R
  }

  /** Returns an id for a new row, where other values of the row depend on it. */
  newId (table: Table): number {
    return this.#map.takeId(table)
  }

  /** Changes a row, and gives it its next version. Returns the same row if nothing differs. */
  update<R extends object> (table: Table<R>, row: Readonly<R>, changes: Partial<R>): R {
    const [before, after] = [row as Row, changes as Row]
    if (Object.keys(after).every((field) => before[field] === after[field])) return row
    const version = nextVersion(before['version'] as number, (before['versionFloor'] ?? 0) as number)
    return this.amend(table, row, 'version' in table.columns ? Object.assign({}, changes, { version }) : changes)
  }

  /** Changes what is no part of the record: the row keeps its version. */
  amend<R extends object> (table: Table<R>, row: Readonly<R>, changes: Partial<R>): R {
    // Node 20 takes 1.4 µs for `{ ...row, ...changes }`, and 0.2 µs for this.
    const after = Object.assign({}, row, changes)
    this.#map.set(table, (after as Row)[table.id] as Id, after)
    return after
  }

  delete<R extends object> (table: Table<R>, row: Readonly<R>): void {
    this.#map.set(table, (row as Row)[table.id] as Id, undefined)
  }
}
