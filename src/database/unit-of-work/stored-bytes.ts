import type { FastifyError } from '@fastify/error'
import { StorageLimitReached } from '../../errors.ts'
import { getOrAdd } from '../get-or-add.ts'
import type { Table } from '../table.ts'

/** What every row counts beside its texts. */
export const ROW_BYTES = 64

/** How many bytes a transaction adds to those that its accounts store, or takes away from them. */
export class StoredBytes {
  /** What it adds, by account. */
  readonly added = new Map<number, number>()
  readonly #limit: number
  readonly #before: ReadonlyMap<number, number>

  /**
   * @param limit maximum bytes of an account; 0 is no limit
   * @param before how many bytes the accounts store before the transaction
   */
  constructor (limit: number, before: ReadonlyMap<number, number>) {
    this.#limit = limit === 0 ? Infinity : limit
    this.#before = before
  }

  add (account: number, bytes: number): void {
    if (bytes !== 0) this.added.set(account, this.of(account) + bytes)
  }

  /** Returns what the transaction has added so far. */
  of (account: number): number {
    return this.added.get(account) ?? 0
  }

  /** Returns the error of a write that adds to an account, if the account stores more than its limit. */
  refusalOf (account: number): FastifyError | undefined {
    const stored = (this.#before.get(account) ?? 0) + this.of(account)
    return stored > this.#limit ? new StorageLimitReached(this.#limit) : undefined
  }
}

/** Returns the length of texts in bytes, and that of their row. */
export function bytesOfTexts (...texts: Array<string | null | undefined>): number {
  return texts.reduce((sum, text) => sum + lengthOf(text), ROW_BYTES)
}

function lengthOf (text: string | null | undefined): number {
  return text == null ? 0 : Buffer.byteLength(text)
}

/** Returns how much a row counts; 0 if there is none. */
export function bytesOfRow (table: Table, row: Record<string, unknown> | undefined): number {
  if (row === undefined || table.isUncounted) return 0
  let bytes = ROW_BYTES
  for (const field of textFieldsOf(table)) bytes += lengthOf(row[field] as string | null)
  return bytes
}

/**
 * Returns how much a row counts, as SQL.
 *
 * @param alias that of the row, or the name of its table
 */
export function bytesSql (table: Table, alias: string): string {
  const texts = textFieldsOf(table).map((field) => `coalesce(octet_length(${alias}.${table.columns[field]!.name}), 0)`)
  return [ROW_BYTES, ...texts].join(' + ')
}

const textFields = new WeakMap<Table, string[]>()

function textFieldsOf (table: Table): string[] {
  return getOrAdd(textFields, table, () =>
    Object.keys(table.columns).filter((field) => table.columns[field]!.type === 'text'))
}
