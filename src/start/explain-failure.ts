import { ConfigError } from '../config.ts'
import { OperationalError } from '../operational-error.ts'

/** What goes wrong before there is a service, by what its error says of itself, and what to do. */
const REASONS: Array<[sign: RegExp, reason: string]> = [
  [/\bEADDRINUSE\b/, 'The port is in use. Stop what listens on it, or set PORT to another.'],
  [/\bEACCES\b/, 'Listening on this port is not allowed. Set PORT to one above 1023.'],
  [/\b(EADDRNOTAVAIL|ENOTFOUND)\b/, 'HOST is no address of this machine. Set it to one that is, such as 127.0.0.1.'],
  [/directory does not exist/, 'The folder of the database file does not exist. Create it, or set DATABASE_URL to another.'],
  [/\bSQLITE_CANTOPEN/, 'The database file cannot be opened or created. Check that DATABASE_URL names a file, and that its folder may be written.'],
  [/\b(SQLITE_READONLY|25006)/, 'The database may not be written. Allow it for the file and its folder, or set DATABASE_URL to another.'],
  [/\bSQLITE_(NOTADB|CORRUPT)/, 'The file that DATABASE_URL names is damaged or no SQLite database. Restore it, or set another.'],
  [/\b(SQLITE_BUSY|SocketTimeout)/, 'The database is locked by another program, or does not answer. End that program, or try again.'],
  [/\b(SQLITE_FULL|SQLITE_IOERR|53100)/, 'The disk of the database is full or fails. Make room on it.'],
  [/\b(DatabaseNotReachable|ConnectionClosed|TooManyConnections|P1001|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)\b/, 'The database server cannot be reached. Check that it runs, and where DATABASE_URL says it is.'],
  [/\b(AuthenticationFailed|DatabaseAccessDenied|28P01|28000)\b/, 'The database server refuses the user or password of DATABASE_URL.'],
  [/\b(DatabaseDoesNotExist|3D000)\b/, 'The database server has no database of the name in DATABASE_URL. Create it, or set another.']
]

interface Failure { code?: string, statusCode?: number, originalCode?: string, kind?: string, message?: string, cause?: Failure }

/** One clear message for the end of a process: no stack, no password, and what to do about it. */
export function explainFailure (error: unknown): string {
  if (error instanceof ConfigError || error instanceof OperationalError) return error.message
  const { message = '', statusCode } = error as Failure
  const signs = causes(error as Failure).flatMap(({ code, originalCode, kind, message }) => [code, originalCode, kind, message]).join(' ')
  const known = REASONS.find(([sign]) => sign.test(signs))
  if (known !== undefined) return known[1]
  if (statusCode !== undefined) return message
  // The schema engine says where it was; Prisma's client says what it was about, and the reason last.
  const [said = ''] = message.split(/\n\s*0: /)
  return `Stopped by an error: ${said.trim().split('\n').at(-1)}`
}

/** Prisma wraps the driver's error in its own, and the committer wraps that. */
function causes (error: Failure | undefined): Failure[] {
  const found: Failure[] = []
  for (let at = error; at instanceof Object && found.length < 6; at = at.cause) found.push(at)
  return found
}
