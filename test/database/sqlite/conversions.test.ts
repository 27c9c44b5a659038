// Only on SQLite: tests the connections to SQLite.

import t from 'tap'
import { Prisma } from '../../../src/generated/sqlite/client.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import type { Database } from '../../../src/database/database.ts'
import { SqliteConnection } from '../../../src/database/sqlite/connection.ts'
import { fileOf } from '../../../src/database/sqlite/database-file.ts'
import { database, freshDatabase } from '../../support/database.ts'

const skip = database === 'postgresql' && 'it tests SQLite'

/** Values of Prisma Client by the declaration of their column, with what SQLite stores. */
const VALUES: Array<[declaration: string, value: unknown, stored: string, read?: unknown]> = [
  ['BIGINT', 9223372036854775807n, '9223372036854775807'],
  ['BIGINT', -9223372036854775808n, '-9223372036854775808'],
  ['BIGINT', 9007199254740993n, '9007199254740993'],
  ['BIGINT', 0n, '0'],
  ['INTEGER', 2147483647n, '2147483647', 2147483647],
  ['INTEGER', -1, '-1'],
  ['BOOLEAN', true, '1'],
  ['BOOLEAN', false, '0'],
  ['DATETIME', new Date('2026-11-21T10:00:00.007Z'), "'2026-11-21T10:00:00.007Z'"],
  ['DATETIME', new Date('1969-07-20T20:17:40.000Z'), "'1969-07-20T20:17:40.000Z'"],
  ['DATETIME', new Date('0001-01-01T00:00:00.000Z'), "'0001-01-01T00:00:00.000Z'"],
  ['DATETIME', new Date('9999-12-31T23:59:59.999Z'), "'9999-12-31T23:59:59.999Z'"],
  ['TEXT', '', "''"],
  ['TEXT', "é 漢 😀 ' \u2028", "'é 漢 😀 '' \u2028'"],
  // A lone surrogate has no UTF-8.
  ['TEXT', 'a\ud800b', "'a\ufffdb'", 'a\ufffdb'],
  ['TEXT', 'a long text '.repeat(10_000), `'${'a long text '.repeat(10_000)}'`],
  ['BIGINT', null, 'NULL'],
  ['DATETIME', null, 'NULL']
]

t.test('Prisma Client reads each value as it wrote it', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const { prisma, close } = await openDatabase({ url, pool: 1, timeout: 60_000 })
  t.teardown(close)
  const bare = new SqliteConnection(fileOf(url))
  t.teardown(async () => { await bare.close() })
  for (const [i, [declaration, value, stored, read = value]] of VALUES.entries()) {
    const name = `${declaration}, value ${i}`
    const table = Prisma.raw(`kept_${i}`)
    await prisma.$executeRaw`CREATE TABLE ${table} (value ${Prisma.raw(declaration)})`
    t.equal(await prisma.$executeRaw`INSERT INTO ${table} VALUES (${value})`, 1)
    t.same(bare.all(`SELECT quote(value) AS stored FROM kept_${i}`, []), [{ stored }], `${name}, stored`)
    const [row] = await prisma.$queryRaw<[{ value: unknown }]>`SELECT value FROM ${table}`
    t.same(row.value, read, name)
    t.equal(Object.prototype.toString.call(row.value), Object.prototype.toString.call(read), `${name} has its type`)
  }
})

t.test('a column without a declared type has that of its values', { skip }, async (t) => {
  const { prisma, close } = await openDatabase({ url: await freshDatabase(t), pool: 1, timeout: 60_000 })
  t.teardown(close)
  t.same(await prisma.$queryRaw`
    SELECT 9223372036854775807 AS large, 0.5 AS half, 'text' AS text, NULL AS missing, x'00ff' AS bytes`,
  [{ large: 9223372036854775807n, half: 0.5, text: 'text', missing: null, bytes: Uint8Array.of(0, 255) }])
  t.same(await prisma.$queryRaw`SELECT NULL AS value UNION ALL SELECT 1`, [{ value: null }, { value: 1n }])
})

t.test('a model keeps 64-bit ids, and dates of both formats', { skip }, async (t) => {
  const { prisma, close } = await openDatabase({ url: await freshDatabase(t), pool: 1, timeout: 60_000 })
  t.teardown(close)
  const createdAt = new Date('2026-11-21T10:00:00.007Z')
  const account = { id: 9223372036854775807n, name: '', createdAt }
  await prisma.$executeRaw`PRAGMA ignore_check_constraints = ON` // those that keep ids below 2^53
  t.match(await prisma.account.create({ data: account }), account)
  t.match(await prisma.account.findUnique({ where: { id: account.id } }), account)
  t.match(await prisma.account.findMany({ where: { createdAt: { gte: createdAt } } }), [account])
  // Prisma Studio and older versions of Prisma store milliseconds.
  await prisma.$executeRaw`UPDATE accounts SET created_at = CAST(${createdAt.getTime()} AS integer)`
  t.match(await prisma.account.findFirst(), account)
})

/** Statements that fail, with the messages of Prisma Client. */
const ERRORS: Array<[name: string, statement: (client: Database['prisma']) => Promise<unknown>, message: RegExp]> = [
  [
    'a unique index',
    async (client) => {
      const account = await client.account.create({ data: { name: 'Ada', createdAt: new Date() } })
      await client.category.createMany({ data: [1, 2].map(() => ({ accountId: account.id, id: 7n, name: 'Dogs' })) })
    },
    /UNIQUE constraint failed: categories.id/
  ],
  ['a missing table', async (client) => await client.$queryRaw`SELECT * FROM nowhere`, /nowhere/],
  ['a syntax error', async (client) => await client.$queryRaw`SELEC 1`, /syntax error/],
  [
    'a full disk',
    async (client) => {
      await client.$queryRaw`PRAGMA max_page_count = 1`
      await client.$executeRaw`CREATE TABLE filled AS SELECT randomblob(1000000)`
    },
    /database or disk is full/
  ]
]

t.test('Prisma Client reports the message of an error', { skip }, async (t) => {
  for (const [name, statement, message] of ERRORS) {
    const { prisma, close } = await openDatabase({ url: await freshDatabase(t), pool: 1, timeout: 60_000 })
    const thrown: unknown = await statement(prisma).catch((error: unknown) => error)
    t.match(thrown, { message }, name)
    await close()
  }
})
