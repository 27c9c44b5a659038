import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { Type, type Static } from '@sinclair/typebox'
import { Ajv, type ValidateFunction } from 'ajv'
import { problemOfDatabaseUrl } from './database/postgresql/connection-url.ts'
import { problemOfHttpUrl } from './http/http-url.ts'

const integer = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })
const optional = (pattern: string, description: string) =>
  Type.String({ default: '', pattern: `^$|${pattern}`, description })

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** The settings, with their defaults and descriptions. Environment variables have the same names. */
export const ConfigSchema = Type.Object({
  PORT: integer(3000, 0, 65535, 'Port to listen on; 0 selects a free port'),
  HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'Address to listen on' }),
  DATABASE_URL: Type.String({
    default: 'file:./petstore.db',
    pattern: '^(file:.+|postgres(ql)?://.+)$',
    description: 'Database: file:./petstore.db or postgresql://user:password@host:5432/name, with ?schema=name for another ' +
      'schema than public'
  }),
  DATABASE_POOL: integer(10, 2, 1000, 'Number of connections to PostgreSQL, in each process'),
  PROCESSES: Type.String({
    default: '1',
    pattern: '^(auto|[1-9]\\d{0,2})$',
    description: 'Number of worker processes that share the port, from 1 to 999; auto is one for each core. More ' +
      'than one need PostgreSQL. Limits "in each process" apply to each of them'
  }),
  MIGRATE_ON_START: Type.Optional(Type.Boolean({
    description: 'Apply pending migrations when the service starts; by default true for SQLite and false for PostgreSQL'
  })),
  SIGNUP: Type.Union([Type.Literal('open'), Type.Literal('closed')], {
    default: 'open', description: 'Allow POST /accounts to create accounts'
  }),
  LOG_LEVEL: Type.Union(LOG_LEVELS.map((level) => Type.Literal(level)), {
    default: 'info', description: 'Minimum level to log'
  }),
  BASE_PATH: optional('^(/[A-Za-z0-9._~-]+)+$', 'Path prefix for all API routes, such as /v1'),
  PUBLIC_URL: optional(
    '^https?://[^\\s/?#]+(/[^\\s?#]*[^\\s/?#])?$',
    'URL that clients use, such as https://pets.example; makes Location and Link absolute URLs'
  ),
  TRUST_PROXY: optional(
    '^(true|false|[0-9A-Fa-f.:/, ]+)$',
    'Proxies whose X-Forwarded-* headers are trusted: their addresses, or their number; true trusts every sender, so ' +
      'set it only behind a proxy that replaces X-Forwarded-For'
  ),
  CORS_ORIGINS: optional(
    '^(\\*|https?://[^\\s,/]+(\\s*,\\s*https?://[^\\s,/]+)*)$',
    'Origins whose pages may call the API, separated by commas; * allows all, and http://localhost:* any port. By ' +
      'default none; with DEMO, those of this machine: http://localhost:*, http://127.0.0.1:*'
  ),
  RATE_LIMIT_PER_ACCOUNT: integer(
    0, 0, 1_000_000,
    'Maximum requests per minute for each account, with all its API keys, in each process; 0 disables the limit'
  ),
  RATE_LIMIT_SIGNUP: integer(
    0, 0, 1_000_000,
    'Maximum accounts that each client address can open per hour, in each process; 0 disables the limit'
  ),
  RATE_LIMIT_FAILED_AUTH: integer(
    0, 0, 1_000_000,
    'Maximum failed authentications per minute for each client address, in each process; 0 disables the limit'
  ),
  ACCOUNT_TTL_SECONDS: integer(
    0, 0, 315_360_000,
    'Time after which each account that POST /accounts opens is deleted with its records, in seconds; 0 keeps them. ' +
    'A client can ask for less. Accounts of the command line and the demo store stay'
  ),
  QUEUE_LIMIT: integer(
    5000, 1, 1_000_000,
    'Maximum reads, and maximum writes, that wait for the database in each process; further requests of an account ' +
    'that has some waiting get 503, as do those beyond a quarter of it'
  ),
  STORED_BYTES_PER_ACCOUNT: integer(
    0, 0, Number.MAX_SAFE_INTEGER,
    'Maximum bytes that each account can store: the texts of its records, events, idempotency records, snapshots and ' +
    'journal, and 64 for each row; a write beyond it gets 409, deletions pass; 0 disables the limit'
  ),
  BODY_LIMIT: integer(
    131072, 1024, 104857600, 'Maximum size of a request body, in bytes; 8192 at most for POST /accounts'
  ),
  REQUEST_TIMEOUT_MS: integer(
    10000, 100, 600000, 'Time for a request to arrive, and then time for it to wait for the database, in milliseconds'
  ),
  SHUTDOWN_GRACE_MS: integer(
    10000, 0, 600000, 'Time for requests in flight to finish when the service stops, in milliseconds'
  ),
  DELIVERY: Type.Boolean({ default: true, description: 'Deliver messages and webhooks' }),
  DEMO: Type.Boolean({ default: false, description: 'Create a demo store if the database is empty' }),
  LAB: Type.Optional(Type.Boolean({
    description: 'Offer the lab: faults, limits, clocks and snapshots for tests of clients; by default true if DEMO ' +
      'is true'
  })),
  METRICS_PORT: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 65535,
    description: 'Port for Prometheus metrics at /metrics, those of all PROCESSES together; without it, no metrics ' +
      'are recorded'
  })),
  PET_READ_SUNSET: Type.String({
    default: '2030-12-05',
    pattern: '^\\d{4}-\\d{2}-\\d{2}$',
    description: 'Date from which GET /pets/{petId} returns 410'
  }),
  EVENT_RETENTION_DAYS: integer(30, 1, 36500, 'Number of days for which events are stored'),
  WEBHOOKS_ALLOW_PRIVATE: Type.Boolean({
    default: false, description: 'Allow webhooks to call private, loopback and link-local addresses'
  }),
  STREAMS_PER_ACCOUNT: integer(
    100, 1, 1_000_000,
    'Maximum streams of events, and of recorded requests, that each account can have open, in each process'
  ),
  SLOW_READER_MS: integer(
    30000, 100, 3_600_000,
    'Time after which a client that takes no bytes of its response is disconnected, in milliseconds'
  )
})

export type Config = Static<typeof ConfigSchema>

/** Tells whether the service offers the lab: by default, where it has a demo store. */
export function hasLab ({ LAB, DEMO }: Pick<Config, 'LAB' | 'DEMO'>): boolean {
  return LAB ?? DEMO
}

/** Returns the number of worker processes that share the port. */
export function numberOfProcesses ({ PROCESSES }: Pick<Config, 'PROCESSES'>): number {
  return PROCESSES === 'auto' ? availableParallelism() : Number(PROCESSES)
}

/** The day on which the single-pet read was deprecated. Its sunset cannot be earlier. */
const DEPRECATED_SINCE = '2025-12-05'

/** Routes outside the base path. A base path must not equal one of them. */
const ROOT_PATHS = ['/livez', '/readyz', '/.well-known/api-catalog']

/** Front ends on this machine may call a demo. The account of each is protected by its key. */
const DEMO_ORIGINS = 'http://localhost:*, http://127.0.0.1:*'

/** Settings that were renamed. Ignoring a former name would turn its limit off. */
const FORMER_NAMES: Record<string, string> = {
  RATE_LIMIT_PER_KEY: 'is now RATE_LIMIT_PER_ACCOUNT, which counts the requests of all API keys of an account'
}

/** A rule for a string setting, in addition to its pattern. */
interface Rule {
  /** The rule in words, after "must", or the part that a value breaks. */
  text: string | ((value: string) => string)
  isValid?: (value: string) => boolean
}

const RULES: Record<string, Rule> = {
  DATABASE_URL: {
    text: (url) => problemOfDatabaseUrl(url)!,
    isValid: (url) => problemOfDatabaseUrl(url) === undefined
  },
  PROCESSES: { text: 'be a number of processes from 1 to 999, or auto for one for each core' },
  BASE_PATH: {
    text: `be a path such as /v1, without a slash at the end, other than ${ROOT_PATHS.join(', ')}`,
    // Clients remove the segments . and .. from the URLs that they call.
    isValid: (path) => !ROOT_PATHS.includes(path) && new URL(path, 'http://localhost').pathname === path
  },
  PUBLIC_URL: {
    text: 'be a URL in ASCII, without user information, a quote, a query, a fragment or a slash at the end, such as ' +
      'https://xn--fsqu00a.example',
    // Header fields and commands for a shell contain it.
    isValid: (url) => problemOfHttpUrl(url) === undefined && !url.includes("'")
  },
  TRUST_PROXY: {
    text: 'be true, false, a number of proxies from 1 to 99, or IP addresses and networks of proxies, such as ' +
      '10.0.0.0/8, separated by commas',
    isValid: isProxySetting
  },
  CORS_ORIGINS: {
    text: 'be *, or origins such as https://app.example or http://localhost:*, separated by commas, without user ' +
      'information, path or query',
    isValid: (origins) => origins === '*' || origins.split(',').every((origin) => isOrigin(origin.trim()))
  },
  PET_READ_SUNSET: {
    text: `be a date, such as 2030-12-05, and not before ${DEPRECATED_SINCE}`,
    isValid: (date) => isDateFrom(DEPRECATED_SINCE, date)
  }
}

/** Reports invalid settings. The message has one line for each invalid value. */
export class ConfigError extends Error {
  constructor (problems: string[]) {
    super(`These settings are invalid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

type Environment = Record<string, string | undefined>

// Validating the schema itself at every start would take 40 ms.
const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true, validateSchema: false })
let validate: ValidateFunction | undefined

/**
 * Reads the settings from environment variables. An empty variable counts as not set.
 *
 * @throws ConfigError with all invalid values
 */
export function readConfig (environment: Environment): Config {
  const data = Object.fromEntries(Object.entries(environment).filter(([name, value]) =>
    Object.hasOwn(ConfigSchema.properties, name) && value !== '' && value !== undefined)) as Record<string, string>
  const config: Record<string, unknown> = { ...data }
  validate ??= ajv.compile(ConfigSchema)
  validate(config)
  const invalid = new Set((validate.errors ?? []).map(({ instancePath }) => instancePath.slice(1)))
  for (const [name, value] of Object.entries(data)) {
    // Ajv also accepts "1e3", "0x10" and " " as numbers.
    if (schemaOf(name).type === 'integer' && !/^\d+$/.test(value)) invalid.add(name)
    if (RULES[name]?.isValid?.(value) === false) invalid.add(name)
  }
  const former = Object.entries(FORMER_NAMES).filter(([name]) => (environment[name] ?? '') !== '')
  const problems = [
    ...former.map(([name, change]) => `${name} ${change}`),
    ...[...invalid].map((name) => describeProblem(name, data[name]))
  ]
  if (problems.length > 0) throw new ConfigError(problems)
  if (config['DEMO'] === true && config['CORS_ORIGINS'] === '') config['CORS_ORIGINS'] = DEMO_ORIGINS
  return config as Config
}

interface SettingSchema {
  type?: string
  minimum?: number
  maximum?: number
  anyOf?: Array<{ const: string }>
  description?: string
}

function schemaOf (name: string): SettingSchema {
  return (ConfigSchema.properties as Record<string, SettingSchema>)[name] ?? {}
}

/** Describes an invalid value. Omits the value of DATABASE_URL, which may contain a password. */
function describeProblem (name: string, value = ''): string {
  return `${name}${name === 'DATABASE_URL' ? '' : ` is "${value}" but`} must ${describeRule(name, value)}`
}

function describeRule (name: string, value: string): string {
  const { type, minimum, maximum, anyOf, description } = schemaOf(name)
  if (anyOf !== undefined) return `be one of ${anyOf.map((option) => option.const).join(', ')}`
  if (type === 'integer') return `be a whole number from ${minimum} to ${maximum}`
  if (type === 'boolean') return 'be true or false'
  const { text = `fit: ${description}` } = RULES[name] ?? {}
  return typeof text === 'string' ? text : text(value)
}

/** A port of `*` stands for any port. */
function isOrigin (text: string): boolean {
  const base = text.replace(/:\*$/, '')
  if (/[*@?#\\]/.test(base) || !URL.canParse(base)) return false
  return base === text || !/:\d*$/.test(base)
}

function isProxySetting (setting: string): boolean {
  return /^(true|false|[1-9]\d?)$/.test(setting) || setting.split(',').every((entry) => {
    const [address = '', length, ...rest] = entry.trim().split('/')
    const bits = isIP(address) === 4 ? 32 : 128
    const isLength = length === undefined || (/^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits)
    return isIP(address) !== 0 && rest.length === 0 && isLength
  })
}

function isDateFrom (earliest: string, date: string): boolean {
  const time = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(date) && date >= earliest
}
