// Compares `petstore seed` with SQLite's bare driver that inserts the same rows in one transaction.
//
//   node --import=tsx test/bench/bulk.ts 1000000

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { openFile } from '../../src/database/sqlite/driver.ts'

const pets = Number(process.argv[2] ?? 1_000_000)
const ROUNDS = 3
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** Reads the rows that `seed` wrote, as the input of the bare driver. */
interface Row { name: string, category_id: number, status: string, quantity: number | null }

function seed (file: string): number {
  const began = performance.now()
  const { status } = spawnSync(process.execPath, [CLI, 'seed', '--pets', String(pets)], {
    env: { ...process.env, DATABASE_URL: `file:${file}` },
    stdio: 'ignore'
  })
  if (status !== 0) throw new Error('petstore seed failed')
  return performance.now() - began
}

function insertBare (file: string, rows: Row[]): number {
  const database = openFile(file)
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -32768; ' +
      "INSERT INTO accounts (name, created_at) VALUES ('Bare', '2026-11-21T10:00:00.000Z')"
  )
  for (const name of ['Dogs', 'Cats', 'Birds', 'Fish', 'Small animals']) {
    database.prepare('INSERT INTO categories (account_id, name) VALUES (1, ?)').run(name)
  }
  const began = performance.now()
  const pet = database.prepare('INSERT INTO pets (account_id, name, category_id, status) VALUES (1, ?, ?, ?)')
  const item = database.prepare('INSERT INTO inventory_items (pet_id, account_id, quantity) VALUES (?, 1, ?)')
  database.exec('BEGIN')
  for (const { name, category_id: category, status, quantity } of rows) {
    const { lastInsertRowid } = pet.run(name, category, status)
    if (quantity !== null) item.run(lastInsertRowid, quantity)
  }
  database.exec('COMMIT')
  const took = performance.now() - began
  database.close()
  return took
}

function rowsOf (file: string): Row[] {
  const database = openFile(file)
  const rows = database
    .prepare(
      'SELECT name, category_id, status, quantity FROM pets LEFT JOIN inventory_items ON pet_id = id ORDER BY id'
    )
    .all() as Row[]
  database.close()
  return rows
}

const folder = mkdtempSync(join(tmpdir(), 'petstore-bulk-'))
try {
  for (let round = 1; round <= ROUNDS; round++) {
    const files = [join(folder, `seeded-${round}.db`), join(folder, `bare-${round}.db`)] as const
    for (const file of files) await migrate(`file:${file}`)
    const seeded = seed(files[0])
    const bare = insertBare(files[1], rowsOf(files[0]))
    const rate = (ms: number): string => `${Math.round(pets / ms)} thousand pets a second`
    console.log(
      `petstore seed ${rate(seeded)}, with its start; bare driver ${rate(bare)}: ${Math.round((100 * bare) / seeded)} %`
    )
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
