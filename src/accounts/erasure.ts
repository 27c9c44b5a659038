import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { startJob } from '../database/job.ts'
import { columnOf, type Table } from '../database/table.ts'
import { KEY_CACHE_TTL_MS } from './api-key.ts'
import { findAccountsBy } from './queries.ts'

const INTERVAL_MS = 5_000

/** Limits the rows that one transaction erases: few enough that no other write waits noticeably. */
const ROWS_PER_STEP = 500

/** Limits the accounts that one search finds. The next search finds the others. */
const ACCOUNTS_PER_SEARCH = 100

/** How far the rows of an account are erased. */
type Progress = { state: 'erasing', position: Position } | { state: 'erased' } | { state: 'rows are locked' }

interface Position {
  /** The number of tables that have no more rows of the account. */
  tables: number
  /** The last erased id of the next table: without it, each step would walk past the rows that earlier ones erased. */
  after: number
}

const START: Position = { tables: 0, after: 0 }

interface EraseInput { account: number, position: Position }

/** Erases some of the rows of a deleted account, children before parents, and the account last. */
export const eraseRows: Command<EraseInput, Progress> = {
  name: 'eraseRows',
  runsAlone: true,
  run: async (tx, input) => ({ record: await erase(tx, input) })
}

async function erase (tx: Transaction, { account, position }: EraseInput): Promise<Progress> {
  const tables = tx.tables.toReversed()
  let { after } = position
  let rowsLeft = ROWS_PER_STEP
  for (let done = position.tables; done < tables.length; done++) {
    const ids = await eraseFrom(tx, tables[done]!, { account, after, limit: rowsLeft })
    rowsLeft -= ids.length
    // A key of two columns: rows that share the second one are erased together.
    if (rowsLeft <= 0) {
      // Ids that are texts have no order that the service and the database share.
      return { state: 'erasing', position: { tables: done, after: Math.max(0, ...ids.filter(isNumber)) } }
    }
    after = 0
  }
  return { state: await eraseAccount(tx, account) ? 'erased' : 'rows are locked' }
}

function isNumber (id: number | string): id is number {
  return typeof id === 'number'
}

/** @returns the ids of the erased rows */
async function eraseFrom (
  { dialect, query }: Transaction, table: Table,
  { account, after, limit }: { account: number, after: number, limit: number }
): Promise<Array<number | string>> {
  const { name, columns, order } = table
  const id = columnOf(table, order)
  const isText = columns[order]!.type === 'text'
  const ofAccount = '(SELECT i.account FROM i)'
  const { where, orderBy } = dialect.keyset([['r.account_id', ofAccount]], `r.${id}`, '(SELECT i.after FROM i)', false)
  // Another process may erase the same account, or a worker may lock a delivery: the next search finds rows that stay.
  const ids = `
    SELECT r.${id} FROM ${name} r WHERE ${where} ORDER BY ${orderBy} LIMIT (SELECT i.max_count FROM i)
    ${dialect.locking('FOR UPDATE SKIP LOCKED')}`
  const rows = await query<{ id: number | string }>(`
    WITH i AS (
      SELECT i.account, i.after, i."limit" AS max_count
      FROM ${dialect.jsonRows('i', { account: 'bigint', after: isText ? 'text' : 'bigint', limit: 'bigint' })})
    DELETE FROM ${name} WHERE account_id = ${ofAccount} AND ${dialect.inSubquery(id, ids)}
    RETURNING ${id} AS id`, [{ account, after: isText ? '' : after, limit }])
  return rows.map((row) => row.id)
}

/** Erases the row of an account if it has no other rows. @returns whether it did */
async function eraseAccount ({ dialect, query, tables }: Transaction, account: number): Promise<boolean> {
  const isEmpty = tables.map(({ name }) => `NOT EXISTS (SELECT 1 FROM ${name} r WHERE r.account_id = accounts.id)`)
  const erased = await query<object>(`
    DELETE FROM accounts WHERE id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
      AND deleted_at IS NOT NULL AND ${isEmpty.join(' AND ')}
    RETURNING id`, [{ account }])
  return erased.length > 0
}

export const findDeletedAccounts = findAccountsBy('deleted_at', ACCOUNTS_PER_SEARCH)

/** Erases deleted accounts, in every process. After a crash, any of them continues. */
export const erasure = fp<Pick<Config, 'REQUEST_TIMEOUT_MS'>>(async function erasure (app, { REQUEST_TIMEOUT_MS }) {
  // Until then, a request with a cached key may arrive and wait for the database, and must not see a part of the rows.
  const keptMs = KEY_CACHE_TTL_MS + 2 * REQUEST_TIMEOUT_MS

  let found: EraseInput[] = []
  let hasErased = false
  startJob(app, {
    every: INTERVAL_MS,
    async step () {
      if (found.length === 0) {
        const accounts = await findDeletedAccounts(app.read, Date.now() - keptMs)
        found = accounts.map((account) => ({ account, position: START }))
        hasErased = false
      }
      const next = found.shift()
      if (next !== undefined) await eraseSome(next)
      // A search finds 100 accounts at most: once some of them are erased, the next one may find others.
      return found.length > 0 || hasErased
    },
    failure: 'cannot erase deleted accounts'
  })

  async function eraseSome (input: EraseInput): Promise<void> {
    const { account } = input
    try {
      const { record: progress } = await app.commit(eraseRows, input, { account: null })
      if (progress.state === 'erasing') found.unshift({ account, position: progress.position })
      if (progress.state === 'erased') hasErased = true
    } catch (error) {
      // The others do not wait for it.
      app.log.error({ err: error, account }, 'cannot erase a deleted account')
    }
  }
}, { name: 'erasure', dependencies: ['database'] })
