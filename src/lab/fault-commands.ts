import { countRows } from '../accounts/quota.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { pageEtag } from '../http/responses.ts'
import type { Effect } from './effects.ts'
import { FaultLimitReached, FaultNotFound, UnknownApiKey } from './errors.ts'
import { faultEtag, faultRecord, faultTable } from './queries.ts'
import { judge, type OpenFault, type Target } from './rules.ts'
import { faultEvents, type Fault, type NewFault } from './schemas.ts'
import { markChanged } from './state-commands.ts'

/** Maximum number of open faults of an account. */
const MAX_OPEN_FAULTS = 100

/** Number of faults that can be read after they have hit all their requests. */
const MAX_USED_FAULTS = 1_000

export const createFault: Command<{ account: number, fault: NewFault }, Fault> = {
  name: 'createFault',
  stores: true,
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const counts = await countRows(tx, faultTable, inputs, 'r.hits < r.times')
    const keys = await ownersOfKeys(tx, inputs)
    const ids = await tx.allocateIds(faultTable, inputs.length)
    const rows: object[] = []
    const created: Array<{ account: number }> = []
    const results = inputs.map(({ account, fault }): CommandResult<Fault> => {
      const { operation, effect, after = 0, times = 1, keyId } = fault
      if (keyId !== undefined && keys.get(keyId) !== account) {
        return new UnknownApiKey()
      }
      const count = counts.get(account) ?? 0
      if (count >= MAX_OPEN_FAULTS) return new FaultLimitReached(MAX_OPEN_FAULTS)
      counts.set(account, count + 1)
      const id = ids[rows.length]!
      const createdAt = tx.now(account)
      const columns = { id, account_id: account, operation, effect: JSON.stringify(effect), after, times }
      rows.push({ ...columns, key_id: keyId, created_at: createdAt })
      created.push({ account })
      const key = keyId === undefined ? {} : { keyId }
      const record = { id, operation, effect, after, times, ...key, passed: 0, hits: 0, createdAt }
      return { record, etag: faultEtag(record), changes: { lab: [account] } }
    })
    tx.insert(faultTable, rows)
    await forgetUsed(tx, created)
    await markChanged(tx, created)
    return results
  }
}

async function ownersOfKeys (
  { dialect, query }: Transaction, inputs: Array<{ fault: NewFault }>
): Promise<Map<number, number>> {
  const wanted = inputs.flatMap(({ fault: { keyId } }) => keyId === undefined ? [] : [{ id: keyId }])
  if (wanted.length === 0) return new Map()
  const rows = await query<{ id: number, account: number }>(`
    SELECT k.id, k.account_id AS account FROM api_keys k
    WHERE k.id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})`, wanted)
  return new Map(rows.map(({ id, account }) => [id, account]))
}

async function forgetUsed ({ dialect, execute }: Transaction, accounts: Array<{ account: number }>): Promise<void> {
  await execute(`
    DELETE FROM faults WHERE id IN (
      SELECT f.id FROM ${dialect.jsonRows('i', { account: 'bigint' })} JOIN faults f ON f.account_id = i.account
      WHERE f.hits >= f.times AND f.id < (
        SELECT min(u.id) FROM (
          SELECT x.id FROM faults x WHERE x.account_id = i.account AND x.hits >= x.times
          ORDER BY x.id DESC LIMIT ${MAX_USED_FAULTS}) AS u))`, distinct(accounts))
}

export const deleteFault: Command<{ account: number, faultId: number, conditions: Conditions }, undefined> = {
  name: 'deleteFault',
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const { dialect, query, execute } = tx
    const rows = await query<{ id: number, account: number, passed: number, hits: number }>(`
      SELECT f.id, f.account_id AS account, f.passed, f.hits FROM faults f
      WHERE f.id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})
      ORDER BY f.id ${dialect.forUpdate}`, inputs.map(({ faultId }) => ({ id: faultId })))
    const faults = new Map(rows.map((row) => [row.id, row]))
    const deleted: Array<{ id: number, account: number }> = []
    const results = inputs.map(({ account, faultId: id, conditions }): CommandResult<undefined> => {
      const fault = faults.get(id)
      if (fault?.account !== account) return new FaultNotFound()
      const failed = checkPreconditions(conditions, faultEtag(fault))
      if (failed !== undefined) return failed
      faults.delete(id)
      deleted.push({ id, account })
      return { record: undefined, changes: { lab: [account] } }
    })
    await execute(`DELETE FROM faults WHERE id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})`, deleted)
    await markChanged(tx, deleted)
    return results
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
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const { dialect, query, execute } = tx
    const accounts = distinct(inputs.map(({ account }) => ({ account })))
    const rows = await query<{ id: number, account: number, record: string, isOpen: boolean | number }>(`
      SELECT f.id, f.account_id AS account, ${faultRecord(dialect)} AS record, f.hits < f.times AS "isOpen" FROM faults f
      WHERE f.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
      ORDER BY f.id ${dialect.forUpdate}`, accounts)
    const deleted = new Set<number>()
    const results = inputs.map(({ account, conditions, link }): CommandResult<undefined> => {
      const open = rows.filter((row) => row.account === account && Boolean(row.isOpen) && !deleted.has(account))
      const page = open.slice(0, PAGE_SIZE)
      const records = `[${page.map(({ record }) => record).join(',')}]`
      const etag = pageEtag(records, link(open.length > PAGE_SIZE ? page.at(-1)!.id : null))
      const failed = checkPreconditions(conditions, etag)
      if (failed !== undefined) return failed
      deleted.add(account)
      return { record: undefined, changes: { lab: [account] } }
    })
    const ids = rows.filter(({ account }) => deleted.has(account)).map(({ id }) => ({ id }))
    await execute(`DELETE FROM faults WHERE id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})`, ids)
    await markChanged(tx, [...deleted].map((account) => ({ account })))
    return results
  }
}

/** A request that faults of its account may hit. */
export interface MatchInput extends Target {
  account: number
  requestId: string
  /** Tells whether the event of the hit is written at once, because the effect has no events of its own. */
  isImmediate: (effect: Effect) => boolean
}

type LoadedFault = OpenFault & { account: number, record: string }

/**
 * Counts requests in the faults that they match. The faults are locked, so exactly as many requests are hit as each
 * fault says, whatever the number of processes.
 */
export const matchFaults: Command<MatchInput, Fault | null> = {
  name: 'matchFaults',
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const faults = await loadOpenFaults(tx, inputs)
    const counted = new Set<LoadedFault>()
    const usedUp: Array<{ account: number }> = []
    const results = inputs.map((input): CommandResult<Fault | null> => {
      const { account, requestId, operation, isImmediate } = input
      const own = faults.filter((fault) => fault.account === account)
      const before = own.map(({ passed, hits }) => passed + hits)
      const hit = judge(own, input) as LoadedFault | undefined
      own.forEach((fault, i) => { if (fault.passed + fault.hits !== before[i]) counted.add(fault) })
      if (hit === undefined) return { record: null }
      const { passed, hits } = hit
      const fault: Fault = { ...JSON.parse(hit.record) as Fault, passed, hits }
      const events = isImmediate(fault.effect) ? [faultEvents.hit({ fault, requestId, operation })] : []
      if (hits < fault.times) return { record: fault, events }
      usedUp.push({ account })
      return { record: fault, events, changes: { lab: [account] } }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE faults SET passed = i.passed, hits = i.hits
      FROM ${dialect.jsonRows('i', { id: 'bigint', passed: 'bigint', hits: 'bigint' })} WHERE faults.id = i.id`,
    [...counted].map(({ id, passed, hits }) => ({ id, passed, hits })))
    // Requests pay for a fault as long as a process believes it to be open.
    await markChanged(tx, usedUp)
    return results
  }
}

async function loadOpenFaults (
  { dialect, query }: Transaction, inputs: Array<{ account: number }>
): Promise<LoadedFault[]> {
  return await query<LoadedFault>(`
    SELECT f.id, f.account_id AS account, f.operation, f.key_id AS "keyId", f.after, f.times, f.passed, f.hits,
      ${faultRecord(dialect)} AS record
    FROM faults f
    WHERE f.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })}) AND f.hits < f.times
    ORDER BY f.id ${dialect.forUpdate}`, distinct(inputs.map(({ account }) => ({ account }))))
}

export interface Hit { account: number, fault: Fault, requestId: string, operation: string }

/** Writes the event of a hit, after the events of the request itself. */
export const recordHit: Command<Hit, undefined> = {
  name: 'recordHit',
  run: async (_tx, inputs) => inputs.map(({ fault, requestId, operation }) =>
    ({ record: undefined, events: [faultEvents.hit({ fault, requestId, operation })] }))
}
