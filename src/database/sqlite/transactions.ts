import { setTimeout as sleep } from 'node:timers/promises'
import { isLocked } from '../error-classification.ts'
import { COMMIT, ROLLBACK, type OwnStatement, type Run } from '../statements.ts'
import type { ReservedConnection } from '../transact.ts'
import type { Turns } from '../turns.ts'
import type { SqliteConnection } from './connection.ts'

/** Pause between two attempts to acquire a lock that another process holds. It does not block the event loop. */
const LOCK_RETRY_MS = 10

/** IMMEDIATE, so that none fails at its first write because another process wrote first (SQLITE_BUSY_SNAPSHOT). */
export const BEGIN_IMMEDIATE: OwnStatement = { sql: 'BEGIN IMMEDIATE', values: [] }

/**
 * Runs the statements of transactions on a connection: one message after the other, in order of arrival, also if nobody
 * waits for the one before any more. After a message that fails, the next one that runs is a ROLLBACK: without their
 * BEGIN, statements would commit by themselves.
 *
 * @param lockTimeout maximum time to wait for a lock of another process, in ms
 * @param measure runs each COMMIT
 */
export function statementsOn (
  connection: SqliteConnection, lockTimeout: number, measure = (commit: () => void): void => { commit() }
): Run {
  let last: Promise<void> = Promise.resolve()
  let failure: Error | undefined

  return async (statements) => {
    const rows = last.then(async () => await runAll(statements))
    last = rows.then(() => { failure = undefined }, (error: Error) => { failure = error })
    return await rows
  }

  async function runAll (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (failure !== undefined && statements[0]?.sql !== ROLLBACK.sql) throw failure
    const rows: object[][] = []
    for (const { sql, values } of statements) {
      const run = (): void => { rows.push(connection.all(sql, values)) }
      if (sql === BEGIN_IMMEDIATE.sql) await untilUnlocked(lockTimeout, run)
      else if (sql === COMMIT.sql) measure(run)
      else if (sql === ROLLBACK.sql) rollBack(run)
      else run()
    }
    return rows
  }

  function rollBack (run: () => void): void {
    try {
      run()
    } catch {
      // "no transaction is active": SQLite has rolled back by itself.
    }
  }
}

/**
 * Waits for a turn of a connection whose messages run in order: SQLite has one writer at a time, and a connection one
 * transaction. Each turn ends outside any transaction: after a COMMIT that fails, the connection would otherwise stay
 * inside, which loses every later write (prisma/orm#29933).
 *
 * @param runner returns what runs the statements
 */
export async function reserve (turns: Turns, runner: () => Run): Promise<ReservedConnection> {
  const endTurn = await turns.take()
  const run = runner()
  return {
    run,
    release: (failure) => {
      // It runs before the next transaction. A thread that has ended has rolled back.
      if (failure !== undefined) run([ROLLBACK]).catch(() => {})
      endTurn()
    }
  }
}

export async function untilUnlocked<Result> (timeout: number, attempt: () => Result): Promise<Result> {
  const deadline = performance.now() + timeout
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isLocked(error) || performance.now() > deadline) throw error
    }
    await sleep(LOCK_RETRY_MS)
  }
}
