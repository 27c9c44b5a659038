import { DatabaseUnavailable } from '../errors.ts'

/**
 * What a failed statement or transaction means for the commands in it:
 *
 * - `unavailable`: the database is away, full, locked or too slow. Nothing can be said about the
 *   outcome, so nothing is tried again here.
 * - `conflict`: another transaction was in the way and this one was rolled back. Try again.
 * - `statement error`: the statements themselves failed (a foreign key, a CHECK, a defect).
 */
export type ErrorKind = 'unavailable' | 'conflict' | 'statement error'

/** serialization_failure, deadlock_detected, lock_not_available */
const CONFLICTS = new Set(['40001', '40P01', '55P03'])

/** PostgreSQL: insufficient resources, operator intervention (57014 is statement_timeout), system error, connection exception. */
const UNAVAILABLE_CLASSES = new Set(['53', '57', '58', '08'])

/** SQLite: BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB. */
const UNAVAILABLE_SQLITE = /^SQLITE_(BUSY|LOCKED|READONLY|IOERR|CORRUPT|FULL|CANTOPEN|PROTOCOL|NOTADB)/

/** Codes of Node for a server that cannot be reached, or no longer. */
const UNREACHABLE = /\b(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EAI_FAIL|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|ENETRESET)\b/

/** Kinds of the driver adapters that say so without a code. */
const UNAVAILABLE_KINDS = new Set([
  'SocketTimeout', 'ConnectionClosed', 'DatabaseNotReachable', 'TlsConnectionError', 'TooManyConnections',
  'AuthenticationFailed', 'DatabaseDoesNotExist', 'DatabaseAccessDenied', 'TransactionAlreadyClosed'
])

/** Prisma: unreachable, timed out, no connection from the pool, transaction closed or not started in time. */
const UNAVAILABLE_PRISMA = new Set(['P1000', 'P1001', 'P1002', 'P1003', 'P1008', 'P1010', 'P1011', 'P1017', 'P2024', 'P2028', 'P2037'])

export function classifyError (error: unknown): ErrorKind {
  if (error instanceof DatabaseUnavailable) return 'unavailable'
  const { prisma, driver, kind, message } = traits(error)
  if (CONFLICTS.has(driver) || kind === 'TransactionWriteConflict' || prisma === 'P2034') return 'conflict'
  if (UNAVAILABLE_SQLITE.test(driver)) return 'unavailable'
  if (/^[0-9A-Z]{5}$/.test(driver) && UNAVAILABLE_CLASSES.has(driver.slice(0, 2))) return 'unavailable'
  if (UNAVAILABLE_KINDS.has(kind) || UNAVAILABLE_PRISMA.has(prisma)) return 'unavailable'
  if (UNREACHABLE.test(`${driver} ${message}`)) return 'unavailable'
  // node-postgres speaks of a lost or slow connection in plain Errors without a code.
  if (/connection terminated|timeout exceeded|query read timeout|client has encountered a connection error|not queryable/i.test(message)) return 'unavailable'
  return 'statement error'
}

/** Prisma wraps the driver's error in its own, at a depth that differs by call. */
function traits (error: unknown): { prisma: string, driver: string, kind: string, message: string } {
  const found = { prisma: '', driver: '', kind: '', message: '' }
  for (let at = error as Nested | undefined, depth = 0; at instanceof Object && depth < 6; depth++) {
    if (typeof at.code === 'string') found[/^P\d{4}$/.test(at.code) ? 'prisma' : 'driver'] ||= at.code
    found.driver ||= at.originalCode ?? ''
    found.kind ||= at.kind ?? ''
    found.message += ` ${at.message ?? ''} ${at.originalMessage ?? ''}`
    at = at.meta?.driverAdapterError ?? at.cause
  }
  return found
}

interface Nested {
  code?: string
  originalCode?: string
  originalMessage?: string
  kind?: string
  message?: string
  cause?: Nested
  meta?: { driverAdapterError?: Nested }
}

/** Whether another process holds SQLite's lock: the adapter names most of SQLITE_BUSY a `SocketTimeout`. */
export function isLocked (error: unknown): boolean {
  const { kind, driver } = traits(error)
  return kind === 'SocketTimeout' || driver.startsWith('SQLITE_BUSY')
}

/**
 * The answer, or `DatabaseUnavailable` once `ms` have passed: a connection that went silent must not
 * hold its requests for ever.
 */
export async function withDeadline<T> (work: Promise<T>, ms: number): Promise<T> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => { reject(new DatabaseUnavailable()) }, ms)
    work.then(resolve, reject).finally(() => { clearTimeout(timer) })
  })
}
