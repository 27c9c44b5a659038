import './on-postgresql.ts'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { verifyMigrations } from '../../src/database/migrations/startup-check.ts'
import { OperationalError } from '../../src/operational-error.ts'
import { freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { eventually } from '../support/receiver.ts'

const hasPgBouncer = spawnSync('pgbouncer', ['--version']).status === 0

/** Starts PgBouncer in front of a database. @returns its URL */
async function startPgBouncer (t: Test, url: string, mode: 'session' | 'transaction'): Promise<string> {
  const { hostname, port, pathname, username, password } = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'petstore-pgbouncer-'))
  // As root, it runs as another user, which must read its files.
  chmodSync(folder, 0o755)
  const own = new URL(url)
  own.port = String(await freePort())
  writeFileSync(join(folder, 'users.txt'), `"${username}" "${password}"\n`)
  writeFileSync(join(folder, 'pgbouncer.ini'), `
[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own.port}
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = ${mode}
unix_socket_dir =
`)
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const pooler = spawn('pgbouncer', [...asUser, join(folder, 'pgbouncer.ini')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  pooler.stderr.setEncoding('utf8').on('data', (text: string) => { log += text })
  t.teardown(() => {
    pooler.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  await eventually(() => log.includes('process up'), undefined, () => `PgBouncer does not start for ${pathname}: ${log}`)
  return own.href
}

const skip = !hasPgBouncer && 'PgBouncer is not installed'

t.test('a pooler in transaction mode is refused, and one in session mode is not', { skip }, async (t) => {
  const url = await freshDatabase(t)
  await verifyMigrations(url)
  await verifyMigrations(await startPgBouncer(t, url, 'session'))
  const pooled = await startPgBouncer(t, url, 'transaction')
  const error = await verifyMigrations(pooled).then(() => undefined, (error: unknown) => error)
  t.ok(error instanceof OperationalError)
  t.match(error, { message: /^DATABASE_URL leads to a pooler in transaction mode.*session mode\.$/ })
})
