import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { runCommand, type Command } from '../../../src/database/group-commit/command.ts'
import { Committer, type Commit } from '../../../src/database/group-commit/committer.ts'
import type { Dialect } from '../../../src/database/dialect.ts'
import type { Table } from '../../../src/database/table.ts'
import { categories, messages, pets } from '../../../src/generated/tables.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import type { Database } from '../../../src/database/database.ts'
import { webhookSubscribers } from '../../../src/deliveries/enqueue.ts'
import { eventLog } from '../../../src/events/event-log.ts'
import { UnknownCategory } from '../../../src/categories/errors.ts'
import { forUpdate } from '../../../src/database/unit-of-work/write.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { holdWrites } from '../../support/groups.ts'
import { eventually } from '../../support/receiver.ts'
import { NO_EVENTS } from '../../support/no-events.ts'

const NOW = '2026-11-21T10:00:00.000Z'

/** Far longer than any write takes. */
const TIMEOUT_MS = 60_000

interface Opened {
  database: Database
  commit: Commit
  close: () => Promise<void>
  account: number
  /** The names of the account's categories, as a connection of its own sees them. */
  names: () => Promise<string[]>
}

/** Opens a database with one account, a committer, and a second connection that reads. */
async function open (
  t: Test, { queueLimit = 1_000, charge = (_accounts: readonly number[]): void => {} } = {}
): Promise<Opened> {
  const url = await freshDatabase(t)
  const database = await openDatabase({ url, pool: 5, timeout: TIMEOUT_MS })
  const onlooker = await openDatabase({ url, pool: 2, timeout: TIMEOUT_MS })
  const { commit, close } = new Committer(database, {
    queueLimit,
    timeout: TIMEOUT_MS,
    tables: [pets, messages],
    eventLog: eventLog(webhookSubscribers),
    charge
  })
  t.teardown(async () => {
    await close()
    await Promise.all([database.close(), onlooker.close()])
  })
  const { id } = await database.prisma.account.create({ data: { name: 'A store', createdAt: NOW } })
  const names = async (): Promise<string[]> =>
    (await onlooker.prisma.category.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
  return { database, commit, close, account: Number(id), names }
}

const insertInto = ({ jsonRows }: Dialect): string => `
  INSERT INTO categories (account_id, name)
  SELECT i.account, i.name FROM ${jsonRows('i', { account: 'bigint', name: 'text' })}`

/** Adds a category for each input. The name "refused" is refused, and the name "broken" makes the statement fail. */
function addCategory (seen: string[][] = []): Command<{ account: number, name: string }, string> {
  return {
    name: 'addCategory',
    async runAll ({ dialect, execute }, inputs) {
      seen.push(inputs.map(({ name }) => name))
      const outcomes = []
      for (const { account, name } of inputs) {
        if (name === 'refused') {
          outcomes.push(new UnknownCategory())
          continue
        }
        // No account has the id 0. The foreign key fails, and with it the whole transaction on PostgreSQL.
        await execute(insertInto(dialect), [{ account: name === 'broken' ? 0 : account, name }])
        outcomes.push({ record: name })
      }
      return outcomes
    }
  }
}

t.test('commands that arrive together share one transaction', async (t) => {
  const { commit, account, names } = await open(t)
  const seen: string[][] = []
  const add = addCategory(seen)
  const answers = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => await commit(add, { account, name }, { account }))
  )
  t.same(answers.map(({ record }) => record), ['a', 'b', 'c'])
  t.same(seen, [['a', 'b', 'c']])
  t.same(await names(), ['a', 'b', 'c'])
})

t.test('a command is answered while others keep arriving', async (t) => {
  const { commit, account } = await open(t, { queueLimit: 1_000_000 })
  const command: Command<object, undefined> = {
    name: 'doNothing',
    run: async () => ({ record: undefined })
  }
  let isAnswered = false
  const answers = [1, 2].map(async () => { await commit(command, {}, { account }) })
  void Promise.race(answers).then(() => { isAnswered = true })
  await eventually(async () => {
    for (let turn = 0; turn < 100; turn++) {
      answers.push(commit(command, {}, { account }).then(() => {}))
      await nextTurn()
    }
    return isAnswered
  })
  await Promise.all(answers)
  t.pass('it was')
})

t.test('a repetition of a request that is in flight is refused after 2 s, and replayed later', async (t) => {
  const { commit, account } = await open(t)
  let release = (): void => {}
  let isReleased = false
  const released = new Promise<void>((resolve) => { release = resolve }).then(() => { isReleased = true })
  const slow: Command<object, string> = {
    name: 'slow',
    async run () {
      await released
      return { record: 'done' }
    }
  }
  const send = async (): ReturnType<typeof commit<object, string>> =>
    await commit(slow, {}, { account, idempotency: { key: 'k', fingerprint: 'f' } })
  const first = send()
  const late = setTimeout(release, 30_000)
  await t.rejects(send(), { code: 'IDEMPOTENCY_KEY_IN_USE' })
  t.notOk(isReleased, 'it does not wait for the other one')
  clearTimeout(late)
  release()
  t.match(await first, { record: 'done', replayed: false })
  t.match(await send(), { record: 'done', replayed: true })
})

t.test('the committer commits pending commands before it closes', async (t) => {
  const { commit, close, account, names } = await open(t)
  const add = addCategory()
  const answers = ['a', 'b'].map(async (name) => await commit(add, { account, name }, { account }))
  await close()
  t.same(await names(), ['a', 'b'])
  await Promise.all(answers)
})

t.test('the committer answers all of a crowd before it has closed', async (t) => {
  const { commit, close, account } = await open(t)
  const add = addCategory()
  let answered = 0
  const writes = Array.from({ length: 40 }, async (_, i) => {
    await commit(add, { account, name: `${i}` }, { account })
    answered++
  })
  await close()
  t.equal(answered, 40)
  await Promise.all(writes)
})

t.test('a refused command does not affect the others of its group', async (t) => {
  const { commit, account, names } = await open(t)
  const add = addCategory()
  const settled = await Promise.allSettled(
    ['a', 'refused', 'c'].map(async (name) => await commit(add, { account, name }, { account }))
  )
  t.same(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
  t.same(await names(), ['a', 'c'])
})

t.test('a command that makes its group fail is the only one to fail', async (t) => {
  const { commit, account, names } = await open(t)
  const seen: string[][] = []
  const add = addCategory(seen)
  const settled = await Promise.allSettled(
    ['a', 'broken', 'c'].map(async (name) => await commit(add, { account, name }, { account }))
  )
  t.same(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
  t.same(seen, [['a', 'broken', 'c'], ['a', 'broken'], ['a'], ['broken'], ['c']])
  t.same(await names(), ['a', 'c'])
})

t.test('what makes a group fail is soon separated from other accounts', async (t) => {
  const { database, commit, account } = await open(t)
  const other = Number((await database.prisma.account.create({ data: { name: 'Another', createdAt: NOW } })).id)
  const seen: string[][] = []
  const add = addCategory(seen)
  const writes: Array<[account: number, name: string]> = [
    [other, 'broken'], [account, 'a'], [other, 'broken'], [account, 'b'], [other, 'broken'], [account, 'c']
  ]
  await Promise.allSettled(writes.map(async ([account, name]) => await commit(add, { account, name }, { account })))
  t.same(seen.slice(1, 3), [['broken', 'broken', 'broken'], ['a', 'b', 'c']])
})

t.test('a command that makes a large group fail costs the others a few transactions', async (t) => {
  const { commit, account, names } = await open(t)
  const seen: string[][] = []
  const add = addCategory(seen)
  const settled = await Promise.allSettled(Array.from({ length: 20 }, async (_, i) =>
    await commit(add, { account, name: i === 7 ? 'broken' : `${i}` }, { account })))
  t.equal(settled.filter(({ status }) => status === 'rejected').length, 1)
  t.equal((await names()).length, 19)
  t.ok(seen.length < 12, `${seen.length} transactions`)
})

t.test('a command that runs alone shares its transaction with no other, and its account pays for it', async (t) => {
  const charged: number[][] = []
  const { commit, account, names } = await open(t, { charge: (accounts) => { charged.push([...accounts]) } })
  const seen: string[][] = []
  const add = addCategory(seen)
  const alone = { ...addCategory(seen), runsAlone: true as const }
  await Promise.all(['a', 'alone 1', 'b', 'alone 2'].map(async (name) =>
    await commit(name.startsWith('alone') ? alone : add, { account, name }, { account })))
  t.same(seen.map((names) => names.join(', ')).sort(), ['a, b', 'alone 1', 'alone 2'])
  t.same(charged, databaseName === 'sqlite' ? [[account], [account]] : [])
  t.equal((await names()).length, 4)
})

t.test('a COMMIT that fails rejects its commands, and loses no later write', async (t) => {
  const { database, commit, account, names } = await open(t)
  if (databaseName === 'postgresql') {
    await database.prisma.$executeRawUnsafe(
      'ALTER TABLE categories ALTER CONSTRAINT categories_account_id_fkey DEFERRABLE INITIALLY DEFERRED'
    )
  }
  const failing: Command<{ name: string }, string> = {
    name: 'failAtCommit',
    async runAll ({ dialect, query, execute }, inputs) {
      // The foreign key is deferred, so that COMMIT checks it and fails.
      if (databaseName === 'sqlite') await query('PRAGMA defer_foreign_keys = ON')
      await execute(insertInto(dialect), inputs.map(({ name }) => ({ account: 0, name })))
      return inputs.map(({ name }) => ({ record: name }))
    }
  }
  const add = addCategory()
  for (let round = 0; round < 3; round++) {
    await t.rejects(commit(failing, { name: 'lost' }, { account }))
    const { record } = await commit(add, { account, name: `kept ${round}` }, { account })
    t.equal(record, `kept ${round}`)
  }
  t.same(await names(), ['kept 0', 'kept 1', 'kept 2'])
})

t.test('a write that is acknowledged during another transaction survives its rollback', async (t) => {
  const { commit, account, names } = await open(t)
  const add = addCategory()
  let enter = (): void => {}
  let leave = (): void => {}
  const entered = new Promise<void>((resolve) => { enter = resolve })
  const mayLeave = new Promise<void>((resolve) => { leave = resolve })
  const slow: Command<{ account: number }, undefined> = {
    name: 'slowAndDoomed',
    async runAll ({ dialect, execute }, inputs) {
      await execute(insertInto(dialect), inputs.map(({ account }) => ({ account, name: 'doomed' })))
      enter()
      await mayLeave
      throw new Error('rolled back')
    }
  }
  const doomed = commit(slow, { account }, { account })
  await entered
  const other = commit(add, { account, name: 'kept' }, { account })
  setTimeout(leave, 100)
  await t.rejects(doomed, { message: 'rolled back' })
  t.equal((await other).record, 'kept')
  t.same(await names(), ['kept'])
})

t.test('a command of a deleted account is unauthorized', async (t) => {
  const { commit } = await open(t)
  const add = addCategory()
  await t.rejects(commit(add, { account: 4711, name: 'a' }, { account: 4711 }), {
    message: 'The account of this API key was deleted.'
  })
})

t.test('events have gapless numbers in the order of commits', async (t) => {
  const { database, commit, account } = await open(t, { queueLimit: 1_000 })
  const note: Command<{ n: number }, number> = {
    name: 'note',
    runAll: async (_session, inputs) => inputs.map(({ n }) => n % 5 === 0
      ? new UnknownCategory()
      : { record: n, events: [{ type: 'pet.created', data: { n } }, { type: 'pet.updated', data: { n } }] })
  }
  await Promise.allSettled(Array.from({ length: 50 }, async (_, n) => {
    await new Promise((resolve) => setTimeout(resolve, n % 7))
    await commit(note, { n }, { account })
  }))
  const events = await database.prisma.event.findMany({ orderBy: { id: 'asc' } })
  t.same(events.map(({ id }) => Number(id)), Array.from({ length: 80 }, (_, i) => i + 1))
  t.equal(Number((await database.prisma.account.findFirst())?.lastEventId), 80)
})

t.test('writes of one account beyond a quarter of the queue limit are refused at once', async (t) => {
  const { commit, account, names } = await open(t, { queueLimit: 40 })
  const add = addCategory()
  const settled = await Promise.allSettled(
    Array.from({ length: 15 }, async (_, i) => await commit(add, { account, name: `${i}` }, { account }))
  )
  const refused = settled.filter((result) => result.status === 'rejected')
  t.equal(refused.length, 5)
  t.ok(refused.every(({ reason }) => reason.code === 'OVERLOADED'))
  t.equal((await names()).length, 10)
})

t.test('a command can lock rows of a registered table only', async (t) => {
  const { commit, account } = await open(t)
  const lock = (table: Table): Command<object, undefined> => ({
    name: 'lock',
    needs: () => ({ account, needs: [forUpdate(table, 1)] }),
    run: async () => ({ record: undefined })
  })
  await commit(lock(pets), {}, { account })
  await t.rejects(commit(lock(categories), {}, { account }), { message: /no resource registers this table/ })
})

/** Inserts a category for each input, up to `limit`, with ids of the transaction. @returns the ids used */
function insertCategory (
  name: string,
  { limit = Infinity, say = false } = {}
): Command<{ account: number }, number | undefined> {
  return {
    name,
    async runAll ({ allocateIds, insert }, inputs) {
      const ids = await allocateIds(categories, inputs.length)
      await insert(
        categories,
        inputs.slice(0, limit).map(({ account }, i) => ({ id: ids[i]!, accountId: account, name }))
      )
      return inputs.map(({ account }, i) => ({
        record: i < limit ? ids[i] : undefined,
        events: say ? [{ account, type: 'category.created', data: { category: { id: ids[i]!, name } } }] : []
      }))
    }
  }
}

t.test('a write is visible to the next statement of its group, and after COMMIT', async (t) => {
  const { database, commit, account, names } = await open(t)
  const seen: string[][] = []
  const look = (name: string, through: 'query' | 'execute'): Command<{ account: number }, undefined> => ({
    name,
    async runAll ({ dialect, query, execute }, inputs) {
      if (through === 'execute') {
        await execute(
          `UPDATE categories SET name = name || '!' FROM ${dialect.jsonRows('i', { account: 'bigint' })} WHERE account_id = i.account AND name = 'c'`,
          inputs
        )
        seen.push([])
      } else {
        const rows = await query<{ name: string }>('SELECT name FROM categories ORDER BY id')
        seen.push(rows.map(({ name }) => name))
      }
      return inputs.map(() => ({ record: undefined }))
    }
  })
  await Promise.all([
    commit(insertCategory('a'), { account }, { account }),
    commit(look('first', 'query'), { account }, { account }),
    commit(insertCategory('b'), { account }, { account }),
    commit(look('second', 'query'), { account }, { account }),
    commit(insertCategory('c'), { account }, { account }),
    commit(look('third', 'execute'), { account }, { account }),
    commit(insertCategory('d'), { account }, { account })
  ])
  t.same(seen, [['a'], ['a', 'b'], []])
  t.same(await names(), ['a', 'b', 'c!', 'd'], 'the last one as well')

  await Promise.all(
    ['e', 'f'].map(async (name) => await commit(insertCategory(name, { say: true }), { account }, { account }))
  )
  t.same((await names()).slice(4), ['e', 'f'], 'with their events')
  t.equal(await database.prisma.event.count(), 2)
})

t.test('no id is allocated twice, also when a group leaves ids unused', async (t) => {
  const { commit, account, names } = await open(t)
  const commands = [
    insertCategory('takes three, uses one', { limit: 1 }),
    insertCategory('takes two')
  ]
  const wanted = [3, 2]
  const answers = await Promise.all(
    commands.flatMap((command, i) =>
      Array.from({ length: wanted[i]! }, async () => await commit(command, { account }, { account }))
    )
  )
  const ids = answers.flatMap(({ record }) => record ?? [])
  t.equal(ids.length, 3)
  t.same([...new Set(ids)], ids)
  t.equal((await names()).length, 3)
})

t.test('the committing connection waits until the disk has synced', async (t) => {
  const { commit, account } = await open(t)
  let setting: unknown
  const look: Command<object, undefined> = {
    name: 'look',
    async runAll ({ query }, inputs) {
      const [row] = await query<Record<string, unknown>>(
        databaseName === 'sqlite' ? 'PRAGMA synchronous' : 'SHOW synchronous_commit'
      )
      setting = Object.values(row ?? {})[0]
      return inputs.map(() => ({ record: undefined }))
    }
  }
  await commit(look, {}, { account })
  // SQLite: 2 is FULL.
  t.equal(String(setting), databaseName === 'sqlite' ? '2' : 'on')
})

t.test('a group that meets a conflict is tried again', async (t) => {
  const { commit, account, names } = await open(t)
  const add = addCategory()
  let runs = 0
  const contended: typeof add = {
    name: 'contended',
    async runAll (tx, inputs) {
      const outcomes = await runCommand(tx, add, inputs)
      // serialization_failure: PostgreSQL has rolled the transaction back.
      if (++runs < 3) throw Object.assign(new Error('could not serialize access'), { code: '40001' })
      return outcomes
    }
  }
  const { record } = await commit(contended, { account, name: 'a' }, { account })
  t.same([record, runs], ['a', 3])
  t.same(await names(), ['a'])
})

t.test('a write whose conflict does not end is answered', async (t) => {
  const { commit, account, names } = await open(t)
  let runs = 0
  const hopeless: Command<object, undefined> = {
    name: 'hopeless',
    async run () {
      runs++
      throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
    }
  }
  await t.rejects(commit(hopeless, {}, { account }), { code: 'DATABASE_UNAVAILABLE' })
  t.ok(runs > 1, `${runs} attempts`)
  await commit(addCategory(), { account, name: 'a' }, { account })
  t.same(await names(), ['a'])
})

t.test('a write that has waited for two seconds is refused while another one is tried', async (t) => {
  const { commit, account } = await open(t)
  const conflict = (): Error => Object.assign(new Error('deadlock detected'), { code: '40P01' })
  let release = (): void => {}
  let isReleased = false
  const released = new Promise<void>((resolve) => { release = resolve }).then(() => { isReleased = true })
  const hopeless: Command<object, undefined> = { name: 'hopeless', run: async () => { throw conflict() } }
  let runs = 0
  const slow: Command<object, string> = {
    name: 'slow',
    async run () {
      if (++runs === 1) throw conflict()
      await released
      return { record: 'done' }
    }
  }
  const late = setTimeout(release, 30_000)
  const refused = commit(hopeless, {}, { account })
  const tried = commit(slow, {}, { account })
  await t.rejects(refused, { code: 'DATABASE_UNAVAILABLE' })
  t.notOk(isReleased, 'it does not wait for the other one')
  clearTimeout(late)
  release()
  t.match(await tried, { record: 'done' })
})

t.test('a group has at most 256 commands', async (t) => {
  const { commit, account } = await open(t, { queueLimit: 4_000 })
  const sizes: number[] = []
  const note: Command<object, undefined> = {
    name: 'note',
    async runAll (_tx, inputs) {
      sizes.push(inputs.length)
      return inputs.map(() => ({ record: undefined }))
    }
  }
  await Promise.all(Array.from({ length: 600 }, async () => await commit(note, {}, { account })))
  t.equal(Math.max(...sizes), 256, sizes.join())
  t.equal(sizes.reduce((sum, size) => sum + size), 600)
})

t.test('a write that waits longer than the time-out is answered while the group before it runs', async (t) => {
  const { database } = await open(t)
  const options = { queueLimit: 100, timeout: 3_000, tables: [], eventLog: NO_EVENTS }
  const { commit, close } = new Committer(database, options)
  t.teardown(close)
  const release = await holdWrites({ database, commit })
  t.teardown(release)
  const late = commit(addCategory(), { account: 1, name: 'late' }, { account: 1 }).catch((error: unknown) => error)
  t.match(await late, { code: 'DATABASE_UNAVAILABLE' })
})
