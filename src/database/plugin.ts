import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { News } from './group-commit/command.ts'
import { createCommitter, type Commit } from './group-commit/committer.ts'
import { deleteExpiredIdempotencyRecords } from './group-commit/idempotency-records.ts'
import { migrationNames } from './migrations/migrate.ts'
import { createNotifier } from './change-notifications.ts'
import { openDatabase, type Database, type DatabaseOptions } from './open-database.ts'
import { withDeadline } from './error-classification.ts'
import { createRead, type Read } from './read-batching.ts'

declare module 'fastify' {
  interface FastifyInstance {
    database: Database
    /** How requests read: concurrent calls share a statement. */
    read: Read
    /** How everything writes: concurrent commands share a transaction. */
    commit: Commit
    /** Calls the listener after each commit that has something to tell, whichever process made it. */
    onNews: (listener: (news: News) => void) => void
    /** Whether the database can be reached and has all migrations. */
    isReady: () => Promise<boolean>
  }
}

export interface DatabasePluginOptions extends DatabaseOptions {
  /** Reads, and writes, that may wait before the next is refused. */
  queueLimit: number
}

/** How often expired idempotency records are removed. */
const SWEEP_MS = 60_000

/** Opens the database, and closes it after the last request was answered. */
export const database = fp(async function database (app: FastifyInstance, options: DatabasePluginOptions) {
  const opened = await openDatabase(options)
  const listeners: Array<(news: News) => void> = []
  const hear = (news: News): void => { for (const listener of listeners) listener(news) }
  const notifier = createNotifier(opened, options.url, hear, (error) => { app.log.warn({ err: error }, 'could not reach the other processes') })
  const onNews = (news: News): void => {
    hear(news)
    notifier.tell(news)
  }
  const { commit, close } = createCommitter(opened, { ...options, onNews, instrumentation: app.instrumentation })
  app.decorate('onNews', (listener) => { listeners.push(listener) })
  app.decorate('database', opened)
  app.decorate('read', createRead(opened, { ...options, instrumentation: app.instrumentation }))
  app.decorate('commit', commit)
  const known = await migrationNames(opened.dialect.name)
  app.decorate('isReady', async () => {
    try {
      const rows = await withDeadline(opened.reader.$queryRawUnsafe<Array<{ name: string }>>(
        'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL'), options.timeout)
      const finished = new Set(rows.map(({ name }) => name))
      return known.every((name) => finished.has(name))
    } catch {
      return false
    }
  })
  const sweep = setInterval(() => { forgetAllExpired().catch((error: unknown) => { app.log.warn({ err: error }, 'could not remove expired idempotency records') }) }, SWEEP_MS)
  sweep.unref()

  /** A little at a time: between two steps, the writes that wait get their turn. */
  async function forgetAllExpired (): Promise<void> {
    while ((await commit(deleteExpiredIdempotencyRecords, {}, { account: null })).record) continue
  }

  app.addHook('onClose', async () => {
    clearInterval(sweep)
    await close()
    await notifier.close()
    await opened.close()
  })
}, { name: 'database' })
