import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { AccountClocks } from './account-clocks.ts'
import { ACCOUNT_TABLES } from './account-tables.ts'
import { createNotifier } from './change-notifications.ts'
import { withDeadline } from './error-classification.ts'
import type { Changes } from './unit-of-work/success.ts'
import { Committer, type Commit, type CommitterOptions } from './group-commit/committer.ts'
import { deleteExpiredIdempotencyRecords } from './group-commit/idempotency-records.ts'
import { FINISHED_MIGRATIONS, migrationNames } from './migrations/history.ts'
import { startJob } from './job.ts'
import { openDatabase } from './open-database.ts'
import { type Database, type DatabaseOptions } from './database.ts'
import { createReads } from './read-batching.ts'
import type { Read, ReadView } from './reads/query.ts'
import { queryRows } from './statements.ts'
import type { Table } from './table.ts'

declare module 'fastify' {
  interface FastifyInstance {
    database: Database
    /** Reads for requests: concurrent calls share a statement. */
    read: Read
    /** Reads of one moment in several statements, for what is too large for one. One account at a time. */
    readView: ReadView
    /** Runs every write: concurrent commands share a transaction. */
    commit: Commit
    /** The time of each account. */
    clocks: AccountClocks
    /** Calls the listener after each commit that changed something, in any process. */
    onChange: (listener: ChangeListener) => void
    /** Returns whether the database can be reached, accepts writes and has all migrations. */
    isReady: () => Promise<boolean>
  }
}

/** @param isHint another process said so, or another program in its name: the listener must look for itself */
type ChangeListener = (changes: Changes, isHint: boolean) => void

/** `queueLimit` limits the reads that wait as well as the writes. */
type DatabasePluginOptions = DatabaseOptions &
  Required<Pick<CommitterOptions, 'queueLimit' | 'storedBytesLimit' | 'tables' | 'eventLog' | 'changeLog'>>

const EXPIRY_INTERVAL_MS = 60_000

/** Refused connections are named in the log at this interval at most: a busy service tries another every 0.1 s. */
const REFUSALS_LOG_MS = 60_000

/** Opens the database, and closes it after the last request was answered. */
export const database = fp(async function database (app: FastifyInstance, options: DatabasePluginOptions) {
  const { instrumentation } = app
  const opened = await openDatabase({
    ...options,
    onSlowDisk: () => { app.log.info('the disk is slow: transactions run in a thread of their own') }
  })
  let loggedAt = -Infinity
  opened.onRefused?.((open) => {
    if (performance.now() - loggedAt < REFUSALS_LOG_MS) return
    loggedAt = performance.now()
    app.log.warn({ open }, 'PostgreSQL refuses further connections: requests wait for those that are open. ' +
      'Raise its max_connections, or lower DATABASE_POOL')
  })
  checkTables(options.tables)

  const listeners: ChangeListener[] = []
  const notifyListeners: ChangeListener = (changes, isHint) => {
    for (const listener of listeners) {
      try {
        listener(changes, isHint)
      } catch (error) {
        // The write is committed, and the other listeners must be notified of it.
        app.log.error({ err: error }, 'a listener of changes failed')
      }
    }
  }
  const notifier = createNotifier(opened, {
    url: options.url,
    onChange: (changes) => { notifyListeners(changes, true) },
    onError: (error) => { app.log.warn({ err: error }, 'could not reach the other processes') }
  })
  const onChange = (changes: Changes): void => {
    notifyListeners(changes, false)
    notifier.announce(changes)
  }
  const clocks = new AccountClocks()
  const charge = (accounts: readonly number[], began: number): void => { app.admission.chargeAll(accounts, began) }
  const committer = new Committer(opened, { ...options, clocks, onChange, charge, instrumentation })
  const { commit } = committer
  app.decorate('onChange', (listener) => { listeners.push(listener) })
  app.decorate('database', opened)
  app.decorate('clocks', clocks)
  const { read, readView } = createReads(opened, { ...options, instrumentation, charge })
  app.decorate('read', read)
  app.decorate('readView', readView)
  app.decorate('commit', commit)
  const expected = await migrationNames(opened.dialect.name)
  // A transaction is read-only on a standby, and where `default_transaction_read_only` says so. Then none counts.
  const isWritable = opened.dialect.isServer ? "current_setting('transaction_read_only') = 'off'" : 'true'
  const finishedSql = `${FINISHED_MIGRATIONS} AND ${isWritable}`
  app.decorate('isReady', async () => {
    try {
      const rows = await withDeadline(queryRows<{ name: string }>(opened.read, finishedSql), options.timeout)
      const finished = new Set(rows.map(({ name }) => name))
      return expected.every((name) => finished.has(name))
    } catch {
      return false
    }
  })

  startJob(app, {
    every: EXPIRY_INTERVAL_MS,
    step: async () => (await commit(deleteExpiredIdempotencyRecords, {}, { account: null })).record,
    failure: 'cannot delete expired idempotency records'
  })

  app.addHook('onClose', async () => {
    await committer.close()
    notifier.close()
    await opened.close()
  })
}, { name: 'database', dependencies: ['admission'] })

/** @throws when a table of accounts is not registered: deleting an account would leave its rows, or fail */
function checkTables (tables: readonly Table[]): void {
  const registered = new Set(tables.map(({ name }) => name))
  const missing = ACCOUNT_TABLES.filter((name) => !registered.has(name))
  if (missing.length > 0) throw new Error(`no resource registers the table ${missing.join(', ')}`)
}
