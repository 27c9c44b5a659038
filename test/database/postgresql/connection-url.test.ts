// Only on PostgreSQL: SQLite has files.

import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { runChecks } from '../../../src/cli/doctor-checks.ts'
import { openMigrationSession } from '../../../src/database/migrations/history.ts'
import { migrate } from '../../../src/database/migrations/migrate.ts'
import { verifyMigrations } from '../../../src/database/migrations/startup-check.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { connectionOf } from '../../../src/database/postgresql/connection-url.ts'
import { startApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { startPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/receiver.ts'
import { onServer } from '../../support/test-databases.ts'

/** Every printable character of ASCII, and some others. */
const SPECIAL = `${String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 33 + i))} äß€`

/** A name of PostgreSQL has 63 bytes at most. */
const NAME = SPECIAL.replace(/[A-Za-z0-9]/g, '')

interface Session { application: string, user: string, encrypted: boolean, certificate: string | null, remote: boolean }

t.test('what DATABASE_URL says', { skip: database === 'sqlite' && 'SQLite has files' }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-url-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  // The server has another user, and its socket is there.
  chmodSync(folder, 0o777)
  const server = await startPostgres({ unix_socket_directories: folder })
  t.teardown(server.stop)
  const [certificate, key] = await encrypt(server.url, folder)
  await onServer(server.url, `CREATE DATABASE ${pg.escapeIdentifier(NAME)}`)
  const { password, port } = new URL(server.url)
  const name = encodeURIComponent(NAME)
  const local = `postgresql://postgres:${password}@localhost:${port}/${name}`

  await t.test('a user, password and database with every special character', async (t) => {
    const role = pg.escapeIdentifier(NAME)
    await onServer(server.url, `CREATE ROLE ${role} LOGIN PASSWORD ${pg.escapeLiteral(SPECIAL)}`)
    await onServer(server.url, `ALTER DATABASE ${role} OWNER TO ${role}`)
    const url = `postgresql://${name}:${encodeURIComponent(SPECIAL)}@127.0.0.1:${port}/${name}`
    for (const { user, encrypted } of await sessionsOf(t, url)) t.same([user, encrypted], [NAME, false])
  })

  const verified = `sslrootcert=${certificate}`
  for (const [parameters, client] of [
    [`sslmode=verify-full&${verified}`], [`sslmode=require&${verified}`], [`sslmode=verify-ca&${verified}`], [verified],
    ['sslmode=no-verify'], [`sslmode=verify-full&${verified}&sslcert=${certificate}&sslkey=${key}`, '/CN=localhost']
  ] as const) {
    await t.test(`TLS by ${parameters.replaceAll(folder, '…')}`, async (t) => {
      for (const session of await sessionsOf(t, `${local}?${parameters}`)) {
        t.match(session, { encrypted: true, certificate: client ?? null }, session.application)
      }
    })
  }

  await t.test('TLS that cannot be trusted is refused, before the password is sent', async (t) => {
    const otherHost = local.replace('localhost', '127.0.0.1')
    for (const url of [
      `${local}?sslmode=verify-full`, `${local}?sslmode=require`,
      ...['require', 'verify-ca', 'verify-full'].map((mode) => `${otherHost}?sslmode=${mode}&${verified}`)
    ]) {
      const text = /The TLS certificate of the database server is not trusted, or is for another host/
      t.match(await lastCheck(url), { subject: 'database', failed: true, text })
      const says = /self-signed|altnames|TlsConnectionError/
      await t.rejects(migrate(url), says)
      await t.rejects(verifyMigrations(url), says)
      await t.rejects(read(url), { code: 'DATABASE_UNAVAILABLE', cause: { message: says } })
    }
  })

  await t.test('no TLS', async (t) => {
    for (const { encrypted } of await sessionsOf(t, `${local}?sslmode=disable`)) t.equal(encrypted, false)
  })

  await t.test('a folder with a socket', async (t) => {
    for (const url of [
      `postgresql://postgres:${password}@${encodeURIComponent(folder)}:${port}/${name}`,
      `postgresql://postgres:${password}@/${name}?host=${folder}&port=${port}`,
      // Prisma's pages write it so.
      `postgresql://postgres:${password}@localhost:${port}/${name}?host=${folder}`
    ]) {
      for (const { remote } of await sessionsOf(t, url)) t.equal(remote, false)
    }
    t.match(await lastCheck(`postgresql://postgres:x@/${name}?host=${folder}/missing`), { failed: true })
  })

  await t.test('options and the name of the application', async (t) => {
    const url = `${local}?options=-c%20work_mem%3D7MB%20-c%20geqo%3Doff&application_name=mine`
    t.same(await read(url), [{ memory: '7MB' }])
    const session = await openMigrationSession(url)
    t.same(await session.rows("SELECT current_setting('work_mem') AS memory"), [{ memory: '7MB' }])
    await session.close()
    for (const { application } of await sessionsOf(t, url)) t.equal(application, 'mine')
    t.match(await lastCheck(`${local}?options=-c%20nothing%3D1`), { subject: 'database', failed: true, text: /nothing/ })
  })

  /** Opens every kind of connection of the service to a database, and returns how the server sees them. */
  async function sessionsOf (t: Test, url: string): Promise<Session[]> {
    await migrate(url)
    await verifyMigrations(url)
    const { openAccount, app } = await startApp(t, { DATABASE_URL: url })
    t.equal((await (await openAccount()).post('/messages', { message: 'Hello' })).status, 201)
    const session = await openMigrationSession(url)
    const admin = new pg.Client({ ...connectionOf(server.url), database: NAME })
    await admin.connect()
    let sessions: Session[] = []
    // The one that listens is opened in the background.
    await eventually(async () => {
      const { rows } = await admin.query<Session & { query: string }>(`
        SELECT application_name AS application, usename AS user, ssl AS encrypted, client_dn AS certificate,
          client_addr IS NOT NULL AS remote, query
        FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)
      sessions = rows
      return rows.length >= 3 && rows.some(({ query }) => /\b(LISTEN|NOTIFY) petstore_changes/.test(query))
    })
    await Promise.all([admin.end(), session.close()])
    await app.close()
    return sessions
  }
})

/** Gives a server a certificate for the name localhost. @returns the files of the certificate and of its key */
async function encrypt (url: string, folder: string): Promise<[certificate: string, key: string]> {
  const files = ['server.crt', 'server.key'].map((name) => join(folder, name)) as [string, string]
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-out', files[0], '-keyout', files[1]
  ], { stdio: 'ignore' })
  for (const [i, name] of ['server.crt', 'server.key'].entries()) {
    // So the file belongs to the user of the server, who alone may read it.
    const text = readFileSync(files[i]!).toString('base64')
    await onServer(url, `COPY (SELECT '${text}') TO PROGRAM 'umask 077; base64 -d > ${name}'`)
  }
  for (const setting of ["ssl_ca_file = 'server.crt'", 'ssl = on']) await onServer(url, `ALTER SYSTEM SET ${setting}`)
  await onServer(url, 'SELECT pg_reload_conf()')
  await eventually(async () => await encrypted(url))
  return files
}

async function encrypted (url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: `${url}?sslmode=no-verify` })
  const connected = await client.connect().then(() => true, () => false)
  await client.end()
  return connected
}

async function read (url: string): Promise<unknown> {
  const database = await openDatabase({ url, pool: 2, timeout: 20_000 })
  try {
    return (await database.read([{ sql: "SELECT current_setting('work_mem') AS memory", values: [] }]))[0]
  } finally {
    await database.close()
  }
}

/** Returns the last result of `doctor`: a failed check ends it. */
async function lastCheck (url: string): Promise<unknown> {
  let last: unknown
  for await (const result of runChecks({ DATABASE_URL: url })) last = result
  return last
}
