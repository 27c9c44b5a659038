// Only on SQLite: reads settings.

import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { ConfigError, ConfigSchema, numberOfProcesses, readConfig } from '../src/config.ts'
import { startApp, type Answer } from './support/app.ts'

/** Returns the lines of the message about invalid settings, without its heading. */
function problems (environment: Record<string, string>): string[] {
  try {
    readConfig(environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').slice(1).map((line) => line.trim())
    throw error
  }
  return []
}

t.test('every setting but two has a default', async (t) => {
  t.same(readConfig({}), {
    PORT: 3000,
    HOST: '127.0.0.1',
    DATABASE_URL: 'file:./petstore.db',
    DATABASE_POOL: 10,
    PROCESSES: '1',
    SIGNUP: 'open',
    LOG_LEVEL: 'info',
    BASE_PATH: '',
    PUBLIC_URL: '',
    TRUST_PROXY: '',
    CORS_ORIGINS: '',
    RATE_LIMIT_PER_ACCOUNT: 0,
    RATE_LIMIT_SIGNUP: 0,
    RATE_LIMIT_FAILED_AUTH: 0,
    ACCOUNT_TTL_SECONDS: 0,
    QUEUE_LIMIT: 5000,
    STORED_BYTES_PER_ACCOUNT: 0,
    BODY_LIMIT: 131072,
    REQUEST_TIMEOUT_MS: 10000,
    SHUTDOWN_GRACE_MS: 10000,
    DELIVERY: true,
    DEMO: false,
    PET_READ_SUNSET: '2030-12-05',
    EVENT_RETENTION_DAYS: 30,
    WEBHOOKS_ALLOW_PRIVATE: false,
    STREAMS_PER_ACCOUNT: 100,
    SLOW_READER_MS: 30000
  })
})

t.test('a test sets every setting, to look at its effect', async (t) => {
  const folder = fileURLToPath(new URL('.', import.meta.url))
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && name !== 'config.test.ts' && !name.includes('node_modules'))
  const text = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n')
  for (const name of Object.keys(ConfigSchema.properties)) t.match(text, new RegExp(`\\b${name}\\b['"]?(:|=| })`), name)
})

t.test('there are as many processes as PROCESSES says, or as cores', async (t) => {
  t.equal(numberOfProcesses(readConfig({})), 1)
  t.equal(numberOfProcesses(readConfig({ PROCESSES: '12' })), 12)
  t.equal(numberOfProcesses(readConfig({ PROCESSES: 'auto' })), availableParallelism())
})

t.test('an empty setting counts as not set', async (t) => {
  const empty = Object.fromEntries(Object.keys(ConfigSchema.properties).map((name) => [name, '']))
  t.same(readConfig(empty), readConfig({}))
})

t.test('other variables are ignored', async (t) => {
  t.same(
    readConfig({
      PATH: '/bin',
      NODE_ENV: 'production',
      port: 'x',
      toString: 'x',
      constructor: 'x',
      ['__proto__']: 'x'
    }),
    readConfig({})
  )
})

t.test('valid values are accepted', async (t) => {
  const good: Array<[name: string, text: string, value: unknown]> = [
    ['PORT', '0', 0],
    ['PORT', '65535', 65535],
    ['HOST', '::', '::'],
    ['HOST', '0.0.0.0', '0.0.0.0'],
    ['DATABASE_URL', 'file:/var/lib/pets.db', 'file:/var/lib/pets.db'],
    ['DATABASE_URL', 'postgres://u:p@h/d', 'postgres://u:p@h/d'],
    ['DATABASE_URL', 'postgresql://u:p@h:5432/d?sslmode=require', 'postgresql://u:p@h:5432/d?sslmode=require'],
    ...[
      '//h', '///d', '//[::1]:5432/d', '//u@h/d', '//u:a@b:c|d^e@h/d', '//u:p@/d?host=/run/postgresql&port=5433',
      '//%2Frun%2Fpostgresql/d', '//h/a%2Fb%3Fc', '//h/d?options=-c%20work_mem%3D8MB&application_name=mine',
      '//h/d?sslmode=disable', '//h/d?sslrootcert=/ca.pem', '//h/d?sslmode=require&sslcert=/c.pem&sslkey=/k.pem',
      '//h/d?sslmode=no-verify&schema=%C3%BC'
    ].map((rest): [string, string, string] => ['DATABASE_URL', `postgresql:${rest}`, `postgresql:${rest}`]),
    ['MIGRATE_ON_START', 'true', true],
    ['MIGRATE_ON_START', 'false', false],
    ['SIGNUP', 'closed', 'closed'],
    ['LOG_LEVEL', 'silent', 'silent'],
    ['BASE_PATH', '/v1', '/v1'],
    ['BASE_PATH', '/a/b-c_d.e~f', '/a/b-c_d.e~f'],
    ['PUBLIC_URL', 'https://pets.example', 'https://pets.example'],
    ['PUBLIC_URL', 'http://localhost:3000/x/y', 'http://localhost:3000/x/y'],
    ['PUBLIC_URL', 'http://[::1]:3000/a%20b', 'http://[::1]:3000/a%20b'],
    ['TRUST_PROXY', 'true', 'true'],
    ['TRUST_PROXY', '2', '2'],
    ['TRUST_PROXY', '10.0.0.0/8, ::1', '10.0.0.0/8, ::1'],
    ['TRUST_PROXY', 'fd00::/8,127.0.0.1/32', 'fd00::/8,127.0.0.1/32'],
    ['CORS_ORIGINS', '*', '*'],
    ['CORS_ORIGINS', 'https://a.example , http://localhost:5173', 'https://a.example , http://localhost:5173'],
    ['RATE_LIMIT_PER_ACCOUNT', '600', 600],
    ['REQUEST_TIMEOUT_MS', '100', 100],
    ['SHUTDOWN_GRACE_MS', '0', 0],
    ['DELIVERY', 'false', false],
    ['DEMO', 'true', true],
    ['METRICS_PORT', '9090', 9090],
    ['PET_READ_SUNSET', '2025-12-05', '2025-12-05'],
    ['PET_READ_SUNSET', '2028-02-29', '2028-02-29'],
    ['WEBHOOKS_ALLOW_PRIVATE', 'true', true]
  ]
  for (const [name, text, value] of good) { t.equal((readConfig({ [name]: text }) as Record<string, unknown>)[name], value, `${name}=${text}`) }
})

t.test('the message about an invalid value has its name and rule', async (t) => {
  const bad: Array<[name: string, value: string, rule: RegExp]> = [
    ...['x', '-1', '65536', '3000.5', '1e3', ' ', '3000 ', '0x10', 'Infinity', 'NaN', 'true', 'null'].map(
      (value) => ['PORT', value, /a whole number from 0 to 65535/] as [string, string, RegExp]
    ),
    ['DATABASE_POOL', '1', /from 2 to 1000/],
    ...['0', '-1', '1.5', '1000', '02', 'Auto', ' 2'].map(
      (value) => ['PROCESSES', value, /a number of processes from 1 to 999, or auto/] as [string, string, RegExp]
    ),
    ['BODY_LIMIT', '1', /from 1024/],
    ['REQUEST_TIMEOUT_MS', '0', /from 100/],
    ['METRICS_PORT', '70000', /from 0 to 65535/],
    ['EVENT_RETENTION_DAYS', '0', /from 1/],
    ...['1', '0', 'yes', 'TRUE', 'on', 'null', ' true'].flatMap((value) =>
      ['MIGRATE_ON_START', 'DELIVERY', 'DEMO', 'WEBHOOKS_ALLOW_PRIVATE'].map(
        (name) => [name, value, /true or false/] as [string, string, RegExp]
      )
    ),
    ['SIGNUP', 'Open', /open, closed/],
    ['LOG_LEVEL', 'verbose', /fatal, error, warn, info, debug, trace, silent/],
    ...['v1', '/', '/v1/', '//v1', '/v 1', '/v1?x', '/a//b', '/%41', '/.', '/a/../b'].map(
      (value) => ['BASE_PATH', value, /such as \/v1/] as [string, string, RegExp]
    ),
    ...[
      'pets.example',
      'https://',
      'https://pets.example/',
      'ftp://pets.example',
      'https://pets.example?x',
      'https://pets.example/#x',
      'https://a b'
    ].map((value) => ['PUBLIC_URL', value, /such as https:/] as [string, string, RegExp]),
    ...[
      'app.example',
      'https://app.example/',
      'https://a.example,,https://b.example',
      'https://a.example;https://b.example',
      '*,https://a.example',
      'https://*.example',
      'https://ada@app.example',
      'https://app.example?x',
      'https://app.example#x',
      'https://app.example:99999',
      'https://app\\.example',
      'http://localhost:80:*',
      'http://[::1',
      'null'
    ].map((value) => ['CORS_ORIGINS', value, /separated by commas/] as [string, string, RegExp]),
    ...['/livez', '/readyz', '/.well-known/api-catalog'].map(
      (value) => ['BASE_PATH', value, /other than/] as [string, string, RegExp]
    ),
    ...[
      'https://例.jp',
      'https://pets.example/größe',
      'https://a"b',
      "https://a'b",
      "https://pets.example/a'b",
      'https://a<b',
      'https://a`b',
      'https://pets.example/a^b',
      'https://pets.example/100%',
      'https://ada@pets.example',
      'https://ada:secret@pets.example',
      'https://[::1',
      'https://pets.example:99999'
    ].map((value) => ['PUBLIC_URL', value, /in ASCII, without user information, a quote/] as [string, string, RegExp]),
    ['TRUST_PROXY', 'loopback!', /IP addresses and networks/],
    ...[
      'abc',
      '0',
      '100',
      '1, 2',
      '10.0.0.0/33',
      '0.0.0.0/0',
      '::/0',
      '::1/129',
      '10.0.0',
      '10.0.0.1/',
      '10.0.0.1,',
      '10.0.0.0/8/8',
      'true, 10.0.0.1'
    ].map((value) => ['TRUST_PROXY', value, /IP addresses and networks/] as [string, string, RegExp]),
    ...[
      '2030-12-5',
      '2030-13-01',
      '2026-02-30',
      '2025-12-04',
      '05.12.2030',
      '2030-12-05T00:00:00Z',
      'never',
      '0000-00-00',
      '2025-11-31'
    ].map((value) => ['PET_READ_SUNSET', value, /be a date/] as [string, string, RegExp])
  ]
  for (const [name, value, rule] of bad) {
    const [line = '', ...others] = problems({ [name]: value })
    t.match(line, rule, `${name}=${value}`)
    t.ok(line.startsWith(`${name} is "${value}" but must`), line)
    t.same(others, [])
  }
})

t.test('a service with the minimum or maximum of every number starts and responds', async (t) => {
  for (const end of ['minimum', 'maximum'] as const) {
    const settings = Object.fromEntries(Object.entries(ConfigSchema.properties)
      .filter(([name, schema]) => schema.type === 'integer' && !name.endsWith('PORT'))
      .map(([name, schema]) => [name, String((schema as { minimum?: number, maximum?: number })[end])]))
    t.ok('REQUEST_TIMEOUT_MS' in settings)
    const { nobody, withKey } = await startApp(t, settings)
    // On a busy machine, 100 ms may be too short for the database. A 503 is a response as well.
    const settled = async (ask: () => Promise<Answer>): Promise<Answer> => {
      let answer = await ask()
      for (let i = 0; i < 20 && answer.status === 503; i++) answer = await ask()
      return answer
    }
    const { body: { apiKey } } = await settled(async () => await nobody.post('/accounts', { name: 'A store' }))
    t.equal((await settled(async () => await withKey(apiKey).get('/pets'))).status, 200, end)
  }
})

t.test('a sunset before the deprecation is rejected', async (t) => {
  t.same(problems({ PET_READ_SUNSET: '2025-12-04' }), [
    'PET_READ_SUNSET is "2025-12-04" but must be a date, such as 2030-12-05, and not before 2025-12-05'
  ])
})

t.test('all invalid values are listed at once, each on one line', async (t) => {
  const bad = {
    PORT: 'x',
    DATABASE_URL: 'mysql://u:secret@h/d',
    DATABASE_POOL: '0',
    PROCESSES: 'x',
    MIGRATE_ON_START: 'x',
    SIGNUP: 'x',
    LOG_LEVEL: 'x',
    BASE_PATH: 'x',
    PUBLIC_URL: 'x',
    TRUST_PROXY: 'x!',
    CORS_ORIGINS: 'x',
    RATE_LIMIT_PER_ACCOUNT: 'x',
    RATE_LIMIT_SIGNUP: 'x',
    RATE_LIMIT_FAILED_AUTH: 'x',
    QUEUE_LIMIT: 'x',
    BODY_LIMIT: 'x',
    REQUEST_TIMEOUT_MS: 'x',
    SHUTDOWN_GRACE_MS: 'x',
    DELIVERY: 'x',
    DEMO: 'x',
    METRICS_PORT: 'x',
    PET_READ_SUNSET: 'x',
    EVENT_RETENTION_DAYS: 'x',
    WEBHOOKS_ALLOW_PRIVATE: 'x',
    STREAMS_PER_ACCOUNT: 'x',
    SLOW_READER_MS: 'x'
  }
  t.same(problems(bad).map((line) => line.split(' ')[0]).sort(), Object.keys(bad).sort())
  t.same(
    problems({ PORT: 'x', PET_READ_SUNSET: '2020-01-01', HOST: '' }).length,
    2,
    'including those that the schema cannot detect'
  )
})

t.test('the former name of a setting is reported with its new name', async (t) => {
  for (const value of ['600', '0', 'x']) {
    t.match(
      problems({ RATE_LIMIT_PER_KEY: value, PORT: 'x' }),
      [/^RATE_LIMIT_PER_KEY is now RATE_LIMIT_PER_ACCOUNT/, /^PORT/]
    )
  }
  t.same(problems({ RATE_LIMIT_PER_KEY: '' }), [])
})

t.test('the message does not repeat a password', async (t) => {
  for (const url of [
    'mysql://ada:hunter2@h/d', 'hunter2', 'postgresql:ada:hunter2@h', 'file:',
    'postgresql://ada:hunter2@h1:5432,h2:5432/d', 'postgresql://ada:hunter2@h/d?target_session_attrs=read-write',
    ...['schema=', 'schema=a&schema=b', 'schema=pg_temp', 'schema=a%00', `schema=${'ü'.repeat(32)}`]
      .map((parameter) => `postgresql://ada:hunter2@h/d?${parameter}`)
  ]) {
    const [line = ''] = problems({ DATABASE_URL: url })
    t.match(line, /^DATABASE_URL must /)
    t.notMatch(line, 'hunter2')
  }
})

t.test('what a URL of PostgreSQL says has an effect, or is refused in one line', async (t) => {
  const oneHost = /^DATABASE_URL must name one host and no target_session_attrs: .* HAProxy$/
  const encoding = /^DATABASE_URL must be file:.* or postgresql:.*percent-encoding.*%40 for @$/
  const parameters = /^DATABASE_URL must have no parameters but schema, .* application_name, and none of them twice$/
  const table: Array<[url: string, says: RegExp]> = [
    ...[
      '//h1,h2/d', '//h1:5432,h2:5433/d', '//u:p@h1,h2:5432/d', '//h1%2Ch2/d', '///d?host=h1,h2', '//h/d?port=1,2',
      '//h/d?target_session_attrs=any', '//h1,h2/d?target_session_attrs=read-write'
    ].map((url): [string, RegExp] => [url, oneHost]),
    // The rest of the password would be a path, parameters, or nothing.
    ...[
      '//u:1/p@h/d', '//u:1#p@h/d', '//u:p#1@h/d', '//u:100%@h/d', '//u:a%zz@h/d', '//u:%ff@h/d', '//u:a b@h/d',
      '//u:%00@h/d', '//u:p@h/a/b', '//h/d#x', '//h:0/d', '//h/d?options=%'
    ].map((url): [string, RegExp] => [url, encoding]),
    ...[
      '//u:1?p@h/d', '//h/d?connect_timeout=5', '//h/d?ssl=true', '//h/d?channel_binding=require', '//h/d?user=u',
      '//h/d?connection_limit=5', '//h/d?pgbouncer=true', '//h/d?statement_timeout=5', '//h/d?SSLMODE=disable',
      '//h/d?sslmode=require&sslmode=disable'
    ].map((url): [string, RegExp] => [url, parameters]),
    ['//h/d?sslmode=prefer', /must have an sslmode of disable, .* verify-full: the other modes do not depend on/],
    ['//h/d?sslmode=on', /must have an sslmode of disable, no-verify, require, verify-ca, verify-full$/],
    ['//h/d?sslmode=disable&sslrootcert=/ca.pem', /no sslrootcert with sslmode=disable/],
    ['//h/d?sslmode=no-verify&sslrootcert=/ca.pem', /no sslrootcert with sslmode=no-verify/],
    ['//h/d?sslmode=disable&sslcert=/c&sslkey=/k', /no sslcert with sslmode=disable/],
    ['//h/d?sslcert=/c.pem', /sslcert and sslkey together/],
    ['//h/d?sslkey=/k.pem', /sslcert and sslkey together/],
    ['//h/d?sslrootcert=', /no empty parameters/],
    ['//h/d?host=other', /host only for a folder with a socket/],
    ['///d?host=/run&port=x', /a port from 1 to 65535/]
  ]
  for (const [rest, says] of table) {
    for (const scheme of ['postgresql:', 'postgres:']) {
      const lines = problems({ DATABASE_URL: `${scheme}${rest}` })
      t.equal(lines.length, 1, rest)
      t.match(lines[0], says, rest)
    }
  }
})
