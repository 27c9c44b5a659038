import { LAST_INSTANT, timeText } from '../database/account-clocks.ts'
import { recordOf } from '../database/record.ts'
import { runCommand, type Command, type CommandResult } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { AccountNeeds } from '../database/unit-of-work/load.ts'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import { all, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import * as tables from '../generated/tables.ts'
import { checkPreconditions, requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import { pageEtag } from '../http/responses.ts'
import type { Effect } from './effects.ts'
import { FaultLimitReached, FaultNotFound, UnknownApiKey } from './errors.ts'
import { faultEtag, faultRecord, lasts } from './queries.ts'
import { isOpen, judge, type OpenFault, type Target } from './rules.ts'
import { FaultSchema, faultEvents, type Fault, type NewFault } from './schemas.ts'

/** Maximum number of open faults of an account. */
const MAX_OPEN_FAULTS = 100

const LAST_TIME = timeText(LAST_INSTANT)

/** In place of `times` for a fault that lasts. */
const ANY_NUMBER = Number.MAX_SAFE_INTEGER

/** Number of faults that can be read after they have hit all their requests. */
const MAX_USED_FAULTS = 1_000

interface NewFaults { account: number, faults: NewFault[] }

/**
 * The keys of an account stand for the number of its faults: two groups that count wait for each other. They load no
 * faults: with 1,100 of them, that took 2 to 8 times as long as to count them in the database.
 */
const needs = ({ account }: { account: number }): AccountNeeds => ({ account, needs: [all(tables.apiKeys)] })

/** Creates the faults of a scenario: all, or none of them. */
export const createScenario: Command<NewFaults, Fault[]> = {
  name: 'createScenario',
  stores: true,
  runsAlone: 'with its kind',
  needs,
  async runAll (tx, inputs) {
    const counts = await countOpen(tx, inputs)
    const ids = await tx.allocateIds(tables.faults, inputs.reduce((count, { faults }) => count + faults.length, 0))
    const created: Array<{ account: number, now: string }> = []
    const results = inputs.map(({ account, faults }): CommandResult<Fault[]> => {
      const hasKey = ({ keyId }: NewFault): boolean =>
        keyId === undefined || tx.rows(account).get(tables.apiKeys, keyId) !== undefined
      if (!faults.every(hasKey)) return new UnknownApiKey()
      const count = (counts.get(account) ?? 0) + faults.length
      if (count > MAX_OPEN_FAULTS) return new FaultLimitReached(MAX_OPEN_FAULTS)
      counts.set(account, count)
      created.push({ account, now: tx.now(account) })
      const records = faults.map((fault) => addFault(tx, account, ids.shift()!, fault))
      return { record: records, etag: pageEtag(JSON.stringify(records), ''), changes: { lab: [account] } }
    })
    await forgetUsed(tx, created)
    return results
  }
}

/** Creates one fault, as a scenario of one does. */
export const createFault: Command<{ account: number, fault: NewFault }, Fault> = {
  name: 'createFault',
  stores: true,
  runsAlone: 'with its kind',
  needs,
  async runAll (tx, inputs) {
    const scenarios = inputs.map(({ account, fault }) => ({ account, faults: [fault] }))
    const results = await runCommand(tx, createScenario, scenarios)
    return results.map((result) => {
      if (result instanceof Error) return result
      const [record] = result.record
      return { ...result, record: record!, etag: faultEtag(record!) }
    })
  }
}

/** @returns the record of the fault */
function addFault (
  tx: Transaction, account: number, id: number, { effect, times = 1, rate, seed = 0, ...fault }: NewFault
): Fault {
  const { forSeconds } = fault
  const endsAt = forSeconds === undefined ? null : tx.now(account, forSeconds * 1_000)
  return faultOf(tx.rows(account).insert(tables.faults, {
    after: 0,
    ...fault,
    id,
    effect: JSON.stringify(effect),
    times: forSeconds === undefined ? times : ANY_NUMBER,
    // Where the clock stops, the fault would have ended before its first request.
    endsAt: endsAt === LAST_TIME ? null : endsAt,
    rate: rate === undefined ? null : JSON.stringify(rate),
    seed: rate === undefined ? null : seed,
    createdAt: tx.now(account)
  }))
}

function faultOf (row: Readonly<tables.FaultRow>): Fault {
  const { effect, times, forSeconds, rate, passed, spared } = row
  return recordOf(FaultSchema, {
    ...row,
    effect: JSON.parse(effect) as Effect,
    times: forSeconds === null ? times : null,
    rate: rate === null ? null : Number(rate),
    passed: passed + spared
  })
}

/** @returns how many faults are open, by account */
async function countOpen (
  { dialect, query, now }: Transaction, inputs: Array<{ account: number }>
): Promise<Map<number, number>> {
  const rows = await query<{ account: number, count: number }>(`
    SELECT i.account, (
      SELECT count(*) FROM faults f
      WHERE f.account_id = i.account AND f.hits < f.times AND ${lasts(dialect, 'f', 'i.now')}) AS count
    FROM ${dialect.jsonRows('i', { account: 'bigint', now: 'text' })}`,
  distinct(inputs.map(({ account }) => ({ account, now: now(account) }))))
  return new Map(rows.map(({ account, count }) => [account, count]))
}

async function forgetUsed (
  { dialect, execute }: Transaction, accounts: Array<{ account: number, now: string }>
): Promise<void> {
  const isUsed = (fault: string): string => `NOT (${fault}.hits < ${fault}.times AND ${lasts(dialect, fault, 'i.now')})`
  // Materialized, or PostgreSQL could look for the oldest once for each fault.
  await execute(`
    WITH i AS MATERIALIZED (
      SELECT i.account, i.now, (
        SELECT min(u.id) FROM (
          SELECT x.id FROM faults x WHERE x.account_id = i.account AND ${isUsed('x')}
          ORDER BY x.id DESC LIMIT ${MAX_USED_FAULTS}) AS u) AS oldest
      FROM ${dialect.jsonRows('i', { account: 'bigint', now: 'text' })})
    DELETE FROM faults WHERE id IN (
      SELECT f.id FROM i JOIN faults f ON f.account_id = i.account AND f.id < i.oldest
      WHERE ${isUsed('f')})`, distinct(accounts))
}

export const deleteFault: Write<{ account: number, faultId: number, conditions: Conditions }, undefined> = {
  name: 'deleteFault',
  needs: ({ faultId }) => [forUpdate(tables.faults, faultId)],
  decide ({ account, faultId, conditions }, rows) {
    const fault = rows.get(tables.faults, faultId)
    if (fault === undefined) throw new FaultNotFound()
    const { passed, spared, hits } = fault
    requirePreconditions(conditions, faultEtag({ passed: passed + spared, hits }))
    rows.delete(tables.faults, fault)
    return { record: undefined, changes: { lab: [account] } }
  }
}

interface DeleteFaults {
  account: number
  conditions: Conditions
  /** Returns the `Link` of the first page of the list, whose entity tag the conditions refer to. */
  link: (next: number | null) => string
}

/** Number of faults on the first page of the list. */
const PAGE_SIZE = 20

/** Deletes all faults of an account, those that have hit all their requests included. */
export const deleteFaults: Command<DeleteFaults, undefined> = {
  name: 'deleteFaults',
  // An account can have 1,100 faults, which take longer to load than most groups.
  runsAlone: 'with its kind',
  needs: ({ account }) => ({ account, needs: [all(tables.faults)] }),
  async run (tx, { account, conditions, link }) {
    const rows = tx.rows(account)
    const faults = rows.all(tables.faults)
    const open = faults.filter((fault) => isOpen(fault, rows.now)).sort((a, b) => a.id - b.id)
    const page = open.slice(0, PAGE_SIZE)
    const etag = pageEtag(JSON.stringify(page.map(faultOf)), link(open.length > PAGE_SIZE ? page.at(-1)!.id : null))
    const failed = checkPreconditions(conditions, etag)
    if (failed !== undefined) return failed
    for (const fault of faults) rows.delete(tables.faults, fault)
    return { record: undefined, changes: { lab: [account] } }
  }
}

/** A request that faults of its account may hit. */
export interface MatchInput extends Target {
  account: number
  requestId: string
  /** Tells whether the event of the hit is written at once, because the effect has no events of its own. */
  isImmediate: (effect: Effect) => boolean
  /** Tells whether faults of an effect let the request pass uncounted; by default, none does. */
  ignores?: (effect: Effect) => boolean
}

type LoadedFault = OpenFault & { account: number, record: string }

const effectOf = ({ record }: LoadedFault): Effect => (JSON.parse(record) as Fault).effect

const seenBy = ({ passed, spared, hits }: OpenFault): number => passed + spared + hits

/**
 * Counts requests in the faults that they match. The faults are locked, so exactly as many requests are hit as each
 * fault says, whatever the number of processes.
 */
export const matchFaults: Command<MatchInput, Fault | null> = {
  name: 'matchFaults',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const faults = await loadOpenFaults(tx, inputs)
    const counted = new Set<LoadedFault>()
    const results = inputs.map((input): CommandResult<Fault | null> => {
      const { account, requestId, operation, isImmediate, ignores } = input
      const own = faults.filter((fault) => fault.account === account && ignores?.(effectOf(fault)) !== true)
      const before = own.map(seenBy)
      const hit = judge(own, input, tx.now(account)) as LoadedFault | undefined
      own.forEach((fault, i) => { if (seenBy(fault) !== before[i]) counted.add(fault) })
      if (hit === undefined) return { record: null }
      const { passed, spared, hits } = hit
      const fault: Fault = { ...JSON.parse(hit.record) as Fault, passed: passed + spared, hits }
      const events = isImmediate(fault.effect) ? eventsOf(tx, { account, fault, requestId, operation }) : []
      if (hits < hit.times) return { record: fault, events }
      // Requests pay for a fault as long as a process believes it to be open.
      return { record: fault, events, changes: { lab: [account] } }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE faults SET passed = i.passed, spared = i.spared, hits = i.hits
      FROM ${dialect.jsonRows('i', { id: 'bigint', passed: 'bigint', spared: 'bigint', hits: 'bigint' })}
      WHERE faults.id = i.id`,
    [...counted].map(({ id, passed, spared, hits }) => ({ id, passed, spared, hits })))
    return results
  }
}

async function loadOpenFaults (
  { dialect, query, now }: Transaction, inputs: Array<{ account: number }>
): Promise<LoadedFault[]> {
  const rows = await query<Omit<LoadedFault, 'rate'> & { rate: string | null }>(`
    SELECT r.id, r.account_id AS account, r.operation, r.key_id AS "keyId", r.after, r.times, r.passed, r.spared, r.hits,
      ${dialect.time('r.ends_at')} AS "endsAt", r.rate, r.seed, ${faultRecord(dialect)} AS record
    FROM ${dialect.jsonRows('i', { account: 'bigint', now: 'text' })} CROSS JOIN faults r
    WHERE r.account_id = i.account AND r.hits < r.times AND ${lasts(dialect, 'r', 'i.now')}
    ORDER BY r.id ${dialect.locking('FOR UPDATE')}`, distinct(inputs.map(({ account }) => ({ account, now: now(account) }))))
  return rows.map((row) => ({ ...row, rate: row.rate === null ? null : Number(row.rate) }))
}

export interface Hit { account: number, fault: Fault, requestId: string, operation: string }

/**
 * Writes the event of a hit, after the events of the request itself. As a `Write`, it would be refused beyond the limit
 * of storage, where a hit counts without its event.
 */
export const recordHit: Command<Hit, undefined> = {
  name: 'recordHit',
  run: async (tx, hit) => ({ record: undefined, events: eventsOf(tx, hit) })
}

/** Returns the event of a hit. An account that stores more than its limit gets none: reads would fill the disk. */
function eventsOf ({ storedBytes }: Transaction, { account, fault, requestId, operation }: Hit): NewEvent[] {
  return storedBytes.refusalOf(account) === undefined ? [faultEvents.hit({ fault, requestId, operation })] : []
}
