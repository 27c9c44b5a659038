import { readFileSync } from 'node:fs'
import type { ClientConfig } from 'pg'

/** The parameters that a URL of PostgreSQL can have, each with an effect. Any other would be ignored in silence. */
const PARAMETERS = [
  'schema', 'host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'options', 'application_name'
]

/** The parameters that name files. */
const FILES = [['sslrootcert', 'ca'], ['sslcert', 'cert'], ['sslkey', 'key']] as const

/** Encrypts only if the server agrees: whoever is between the two can take the encryption away. */
const OPPORTUNISTIC = ['allow', 'prefer']

const SSL_MODES = ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full']

const SYNTAX = 'be file:<path> of a file, without parameters, for SQLite, or ' +
  'postgresql://user:password@host:5432/name for PostgreSQL, with percent-encoding where user, password or name have ' +
  'special characters, such as %40 for @'

const ONE_HOST = 'name one host and no target_session_attrs: behind several servers, that of a proxy that leads to ' +
  'the primary, such as HAProxy'

/** Maximum time to wait for a server outside of requests, for a connection or an answer. */
export const SERVER_TIMEOUT_MS = 10_000

/** Returns what is wrong with a DATABASE_URL, after "must", if anything. Repeats nothing of it: it has a password. */
export function problemOfDatabaseUrl (url: string): string | undefined {
  // Each connection to a database in memory would have one of its own.
  if (url.startsWith('file:')) return /^file:$|^file::memory:|\?|[/\\]$/.test(url) ? SYNTAX : undefined
  const [authority = ''] = url.replace(/^[^:]*:\/\//, '').split(/[/?#]/)
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(',')) return ONE_HOST
  if (!isWellFormed(url)) return SYNTAX
  const { hostname, searchParams } = parse(url)
  const parameter = Object.fromEntries(searchParams)
  const { host, port = '1', schema = 'public', sslmode, sslcert, sslkey, sslrootcert } = parameter
  const hosts = `${decodeURIComponent(hostname)}${host}${port}`
  if ('target_session_attrs' in parameter || hosts.includes(',')) return ONE_HOST
  const names = [...searchParams.keys()]
  if (names.some((name) => !PARAMETERS.includes(name)) || new Set(names).size < names.length) {
    return `have no parameters but ${PARAMETERS.join(', ')}, and none of them twice`
  }
  if (!isSchemaName(schema)) return 'have a schema of 1 to 63 bytes that does not begin with pg_'
  if (Object.values(parameter).includes('')) return 'have no empty parameters'
  if (host !== undefined && !host.startsWith('/')) {
    return 'have the parameter host only for a folder with a socket, such as /var/run/postgresql'
  }
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) return 'have a port from 1 to 65535'
  if (sslmode !== undefined && !SSL_MODES.includes(sslmode)) {
    const reason = OPPORTUNISTIC.includes(sslmode) ? ': the other modes do not depend on what the server wants' : ''
    return `have an sslmode of ${SSL_MODES.join(', ')}${reason}`
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) return 'have sslcert and sslkey together'
  if (sslmode === 'disable' && sslcert !== undefined) return 'have no sslcert with sslmode=disable'
  if (/^(disable|no-verify)$/.test(sslmode ?? '') && sslrootcert !== undefined) {
    return `have no sslrootcert with sslmode=${sslmode}, which checks no certificate`
  }
  return undefined
}

/**
 * Returns how to connect to a PostgreSQL. What is missing comes from the defaults of node-postgres, and from PGHOST and
 * its like. Not by its parser, which ignores what it does not know, and guesses where percent-encoding is wrong.
 *
 * @throws if it names a file that cannot be read
 */
export function connectionOf (url: string): ClientConfig {
  const { hostname, port, username, password, pathname, searchParams } = parse(url)
  const given = {
    host: searchParams.get('host') ?? decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1'),
    port: Number(searchParams.get('port') ?? port),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    ssl: encryptionOf(searchParams),
    options: searchParams.get('options'),
    application_name: searchParams.get('application_name')
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value === false || Boolean(value)))
}

/** `require` and `verify-ca` check as much as `verify-full`, and no less. */
function encryptionOf (parameters: URLSearchParams): ClientConfig['ssl'] {
  const mode = parameters.get('sslmode')
  if (mode === 'disable') return false
  const files = FILES.filter(([name]) => parameters.has(name))
  if (mode === null && files.length === 0) return undefined
  return {
    ...mode === 'no-verify' ? { rejectUnauthorized: false } : {},
    ...Object.fromEntries(files.map(([name, option]) => [option, readFileSync(parameters.get(name)!, 'utf8')]))
  }
}

/** Returns the name of the schema with the tables: the parameter `schema` of the URL, or `public`. */
export function schemaOf (url: string): string {
  return parse(url).searchParams.get('schema') ?? 'public'
}

/** Tells whether a URL names its schema. */
export function namesSchema (url: string): boolean {
  return parse(url).searchParams.has('schema')
}

/** Parses a URL, also one with a user and without a host, which the parameter `host` then has. */
function parse (url: string): URL {
  return new URL(url.replace(/^([^/]*\/\/[^/@]*@)\//, '$1localhost/'))
}

/**
 * Tells whether each part of a URL is where it belongs. After a `/`, `?` or `#` that should be encoded, the rest of a
 * password would be a path, parameters, or nothing.
 */
function isWellFormed (url: string): boolean {
  try {
    const { hostname, port, username, password, pathname, search, hash } = parse(url)
    const decoded = decodeURIComponent([hostname, username, password, pathname, search].join(' '))
    return /^postgres(ql)?:\/\/[^\0- \x7f]+$/.test(url) && !decoded.includes('\0') &&
      hash === '' && !/^\/.*[/@]/.test(pathname) && port !== '0'
  } catch {
    return false
  }
}

/** PostgreSQL would cut a longer name, and keeps those with this prefix for itself. */
function isSchemaName (name: string): boolean {
  return name !== '' && Buffer.byteLength(name) <= 63 && !name.startsWith('pg_') && !name.includes('\0')
}
