import { ConfigError } from '../config.ts'
import { OperationalError } from '../operational-error.ts'

/** The causes of failures that an operator can fix, each by a sign in the error, with the remedy. */
const CAUSES: Array<[sign: RegExp, explanation: string]> = [
  [
    /\bEADDRINUSE\b/,
    'The port is in use. Stop the program that listens on it, or set PORT to another port.'
  ],
  [
    /\blisten EACCES\b/,
    'This process has no permission to listen on the port. Set PORT to a port above 1023.'
  ],
  [
    /\b(DatabaseNotReachable|ConnectionClosed|TooManyConnections|P1001|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)\b/,
    'The database server cannot be reached. Check that it runs, and that DATABASE_URL has the right host and port.'
  ],
  [
    /\b(EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN)\b/,
    'HOST is not an address of this machine. Set it to an address of this machine, such as 127.0.0.1.'
  ],
  [
    /unable to open database/,
    'The database file cannot be opened or created. Check that DATABASE_URL names a file in a writable folder.'
  ],
  [
    /readonly database|\b25006/,
    'The database is read-only. Make the file and its folder writable, or set DATABASE_URL to another database.'
  ],
  [
    /file is not a database|disk image is malformed|malformed database schema/,
    'The file in DATABASE_URL is damaged or not a SQLite database. Restore a backup, or set it to another file.'
  ],
  [
    /database is locked|\b(SocketTimeout|P2028)/,
    'The database is locked by another program, or does not respond. Stop that program, or try again.'
  ],
  [
    /database or disk is full|disk I\/O error|\b53100/,
    'The disk of the database is full or has failed. Free space on it, or replace it.'
  ],
  [
    /does not support SSL|There was an error establishing an SSL connection/,
    'The database server does not offer TLS. Remove sslmode from DATABASE_URL, or turn TLS on in the server.'
  ],
  [
    /no pg_hba\.conf entry/,
    'The database server allows no such connection: its pg_hba.conf has no entry for this user, database, address ' +
      'and encryption. Add sslmode=verify-full to DATABASE_URL if it wants TLS, or add an entry in the server.'
  ],
  [
    /client certificate/,
    'The database server wants a client certificate. Set sslcert and sslkey in DATABASE_URL to its files.'
  ],
  [
    /PEM routines|ERR_OSSL|no start line|key values mismatch/,
    'A file of sslrootcert, sslcert or sslkey in DATABASE_URL is damaged, or no PEM file, or the two do not fit.'
  ],
  [
    /\bSASL\b/,
    'The database server asks for a password, and DATABASE_URL has none or another one. Correct it.'
  ],
  [
    /self-signed|unable to (verify|get)|certificate|ERR_TLS|TlsConnectionError/,
    'The TLS certificate of the database server is not trusted, or is for another host. Set sslrootcert in ' +
      'DATABASE_URL to the file of its certificate authority, or sslmode=no-verify to encrypt without a check.'
  ],
  [
    /\b(AuthenticationFailed|DatabaseAccessDenied|28P01|28000)\b/,
    'The database server rejects the user or password in DATABASE_URL. Correct them.'
  ],
  [
    /\b(DatabaseDoesNotExist|3D000)\b/,
    'The database in DATABASE_URL does not exist on the server. Create it, or set DATABASE_URL to another database.'
  ],
  [
    /\b(ENOENT|EACCES|EPERM): /,
    'A file is missing, or this process has no permission for it. Check the files that DATABASE_URL names.'
  ]
]

interface Failure {
  code?: string
  statusCode?: number
  originalCode?: string
  kind?: string
  /** The message of the server, in errors of kind TlsConnectionError. */
  reason?: string
  message?: string
  cause?: Failure
}

/** Maximum number of causes to follow, in case errors refer to each other. */
const MAX_CAUSES = 6

/** Explains why a process ends: one message with the remedy, without a stack or a password. */
export function explainFailure (error: unknown): string {
  if (error instanceof ConfigError || error instanceof OperationalError) return error.message
  const { message = '', statusCode } = error as Failure
  const signs = causesOf(error as Failure)
    .flatMap(({ code, originalCode, kind, reason, message }) => [code, originalCode, kind, reason, message])
    .join(' ')
  const cause = CAUSES.find(([sign]) => sign.test(signs))
  if (cause !== undefined) return cause[1]
  if (statusCode !== undefined) return message
  return explainUnknown(error as Error)
}

/**
 * Explains an error by its reason and, where Prisma names it, the call that failed: Prisma Client puts the reason into
 * the last paragraph, behind lines of the code.
 */
function explainUnknown ({ name, message = '' }: Error): string {
  const call = /^Invalid `([^`]+)` invocation/m.exec(message)?.[1]
  const reason = message.trim().split(/\n\s*\n/).at(-1)!.split('\n').map((line) => line.trim()).join(' ')
  return `Unexpected error${call === undefined ? '' : ` in ${call}`}: ${reason === '' ? name : reason}`
}

/** Returns an error and its causes: Prisma wraps the error of the driver, and the committer wraps Prisma's. */
function causesOf (error: Failure | undefined): Failure[] {
  const causes: Failure[] = []
  for (let at = error; at instanceof Object && causes.length < MAX_CAUSES; at = at.cause) causes.push(at)
  return causes
}
