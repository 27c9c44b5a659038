import { isIP } from 'node:net'
import { Type, type Static } from '@sinclair/typebox'
import { Ajv } from 'ajv'

const integer = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })
const optional = (pattern: string, description: string) =>
  Type.String({ default: '', pattern: `^$|${pattern}`, description })

/** Every setting, its default and its rule; environment variables of the same names. */
export const ConfigSchema = Type.Object({
  PORT: integer(3000, 0, 65535, 'The port to listen on; 0 takes a free one'),
  HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'The address to listen on' }),
  DATABASE_URL: Type.String({ default: 'file:./petstore.db', pattern: '^(file:.+|postgres(ql)?://.+)$', description: 'file:./petstore.db or postgresql://user:password@host:5432/name' }),
  DATABASE_POOL: integer(10, 2, 1000, 'Connections to PostgreSQL'),
  MIGRATE_ON_START: Type.Optional(Type.Boolean({ description: 'Apply pending migrations at the start; true for SQLite, false for PostgreSQL' })),
  SIGNUP: Type.Union([Type.Literal('open'), Type.Literal('closed')], { default: 'open', description: 'Whether POST /accounts opens accounts' }),
  LOG_LEVEL: Type.Union(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)), { default: 'info', description: 'What is logged' }),
  BASE_PATH: optional('^(/[A-Za-z0-9._~-]+)+$', 'A path before every address of the API, such as /v1'),
  PUBLIC_URL: optional('^https?://[^\\s/?#]+(/[^\\s?#]*[^\\s/?#])?$', 'The address clients use, such as https://pets.example; makes Location and Link whole addresses'),
  TRUST_PROXY: optional('^(true|false|[0-9A-Fa-f.:/, ]+)$', 'true, or the addresses of proxies whose X-Forwarded-* fields are believed'),
  CORS_ORIGINS: optional('^(\\*|https?://[^\\s,/]+(\\s*,\\s*https?://[^\\s,/]+)*)$', 'Origins of browsers that may use the API, separated by commas, or *'),
  RATE_LIMIT_PER_KEY: integer(0, 0, 1_000_000, 'Requests a minute for each API key; 0 is no limit'),
  RATE_LIMIT_SIGNUP: integer(0, 0, 1_000_000, 'Accounts an hour for each address; 0 is no limit'),
  RATE_LIMIT_FAILED_AUTH: integer(0, 0, 1_000_000, 'Bad credentials a minute for each address; 0 is no limit'),
  QUEUE_LIMIT: integer(5000, 1, 1_000_000, 'Requests that may wait for the database, reads and writes each; the next gets 503'),
  BODY_LIMIT: integer(131072, 1024, 104857600, 'The largest request body, in bytes'),
  REQUEST_TIMEOUT_MS: integer(10000, 100, 600000, 'How long a request may take to arrive, and then to wait for the database'),
  SHUTDOWN_GRACE_MS: integer(10000, 0, 600000, 'How long requests under way may take once the service was told to stop'),
  DELIVERY: Type.Boolean({ default: true, description: 'Whether this process delivers messages and webhooks' }),
  DEMO: Type.Boolean({ default: false, description: 'Open a demo store in an empty database' }),
  METRICS_PORT: Type.Optional(Type.Integer({ minimum: 0, maximum: 65535, description: 'A port for Prometheus metrics, at /metrics; without it nothing is measured' })),
  PET_READ_SUNSET: Type.String({ default: '2030-12-05', pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'From this date on GET /pets/{petId} answers 410' }),
  EVENT_RETENTION_DAYS: integer(30, 1, 36500, 'How long events are kept'),
  WEBHOOKS_ALLOW_PRIVATE: Type.Boolean({ default: false, description: 'Let webhooks call private, loopback and link-local addresses' })
})

export type Config = Static<typeof ConfigSchema>

/** The day on which the single-pet read was deprecated; its sunset cannot lie before. */
const DEPRECATED_SINCE = '2025-12-05'

/** What stands at the root, whatever the base path is. */
const AT_THE_ROOT = new Set(['/livez', '/readyz', '/.well-known/api-catalog'])

/** What a pattern cannot say of a setting; `rule` in words, after "must". */
const FURTHER: Record<string, { holds: (value: string) => boolean, rule: string }> = {
  BASE_PATH: { holds: (path) => !AT_THE_ROOT.has(path), rule: `be none of ${[...AT_THE_ROOT].join(', ')}` },
  // It stands in headers, where an address in other letters than these cannot.
  PUBLIC_URL: { holds: (url) => /^[!-~]+$/.test(url) && !/["<>\\]/.test(url) && URL.canParse(url), rule: 'be an address as it goes over the wire, such as https://xn--fsqu00a.example' },
  TRUST_PROXY: { holds: isProxies, rule: 'be true, false, or IP addresses and networks such as 10.0.0.0/8, separated by commas' },
  PET_READ_SUNSET: { holds: (date) => isDateFrom(DEPRECATED_SINCE, date), rule: `be a date not before ${DEPRECATED_SINCE}` }
}

/** The settings are wrong; the message has a line for each bad value. */
export class ConfigError extends Error {
  constructor (problems: string[]) {
    super(`These settings are wrong:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

/**
 * Reads the settings from environment variables; an empty one counts as not set.
 *
 * @throws ConfigError that lists every bad value at once
 */
export function readConfig (environment: Record<string, string | undefined>): Config {
  const data = Object.fromEntries(Object.entries(environment).filter(([name, value]) => Object.hasOwn(ConfigSchema.properties, name) && value !== '' && value !== undefined))
  const config: Record<string, unknown> = { ...data }
  // Whether the schema is one need not be asked again at every start; it would take 40 ms.
  const ajv = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true, validateSchema: false })
  ajv.validate(ConfigSchema, config)
  const problems = (ajv.errors ?? []).map(({ instancePath }) => problem(instancePath.slice(1), data))
  // Ajv reads "1e3", "0x10" and " " as numbers, too.
  problems.push(...Object.keys(data).filter((name) => isInteger(name) && !/^\d+$/.test(data[name]!)).map((name) => problem(name, data)))
  for (const [name, { holds, rule }] of Object.entries(FURTHER)) {
    const value = data[name]
    if (value !== undefined && !problems.some((line) => line.startsWith(name)) && !holds(value)) problems.push(`${name} is "${value}" and must ${rule}`)
  }
  if (problems.length > 0) throw new ConfigError([...new Set(problems)])
  return config as Config
}

function isInteger (name: string): boolean {
  return (ConfigSchema.properties as Record<string, { type?: string }>)[name]?.type === 'integer'
}

/** One bad value in words. A DATABASE_URL may hold a password, so its value is not repeated. */
function problem (name: string, data: Record<string, string | undefined>): string {
  const schema = (ConfigSchema.properties as Record<string, { type?: string, minimum?: number, maximum?: number, anyOf?: Array<{ const: string }>, description?: string }>)[name] ?? {}
  const value = name === 'DATABASE_URL' ? '' : ` is "${data[name]}" and`
  if (schema.anyOf !== undefined) return `${name}${value} must be one of ${schema.anyOf.map((option) => option.const).join(', ')}`
  if (schema.type === 'integer') return `${name}${value} must be a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'boolean') return `${name}${value} must be true or false`
  return `${name}${value} must fit: ${schema.description}`
}

function isProxies (setting: string): boolean {
  return setting === 'true' || setting === 'false' || setting.split(',').every((entry) => {
    const [address = '', length, ...rest] = entry.trim().split('/')
    const bits = isIP(address) === 4 ? 32 : 128
    return isIP(address) !== 0 && rest.length === 0 && (length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits))
  })
}

function isDateFrom (earliest: string, date: string): boolean {
  const time = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(date) && date >= earliest
}
