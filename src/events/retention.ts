import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Command } from '../database/group-commit/command.ts'
import { deleteExpiredRecordsOfAccount } from '../database/group-commit/idempotency-records.ts'
import { bytesSql } from '../database/unit-of-work/stored-bytes.ts'
import { events } from '../generated/tables.ts'
import { startJob } from '../database/job.ts'

export interface RetentionOptions {
  /** Number of days for which events are stored. */
  days: number
}

/** A pass reads the oldest event of every account. */
const INTERVAL_MS = 3_600_000

/** Limit the accounts that one transaction checks and the events that it deletes: no write waits noticeably. */
const ACCOUNTS_PER_STEP = 200
const EVENTS_PER_STEP = 500

const DAY_MS = 86_400_000

interface Step {
  /** Id of the account after which the next step continues; `undefined` when all accounts were checked. */
  after: number | undefined
}

interface StepInput {
  after: number
  before: string
  /** Checks no account but this one. */
  only?: number
}

/**
 * Deletes some of the events that are older than `before`, always the oldest of an account, so that its sequence of
 * events gets no gap.
 */
export const deleteExpiredEvents: Command<StepInput, Step> = {
  name: 'deleteExpiredEvents',
  // Of two processes that delete the same events, one waits for the other, and must not hold other rows meanwhile.
  runsAlone: true,
  async run ({ dialect, query, storedBytes }, input) {
    const accounts = await query<{ account: number, expired: boolean | number | null }>(`
      WITH i AS (
        SELECT i.after, i.only, ${dialect.toTime('i.before')} AS before
        FROM ${dialect.jsonRows('i', { after: 'bigint', before: 'text', only: 'bigint' })}),
      seen AS (
        SELECT a.id FROM accounts a WHERE a.id > (SELECT i.after FROM i)
          AND a.id <= (SELECT coalesce(i.only, ${Number.MAX_SAFE_INTEGER}) FROM i) ORDER BY a.id LIMIT ${ACCOUNTS_PER_STEP})
      SELECT s.id AS account,
        (SELECT e.timestamp FROM events e WHERE e.account_id = s.id ORDER BY e.id LIMIT 1)
          < (SELECT i.before FROM i) AS expired
      FROM seen s ORDER BY s.id`, [input])
    // A step deletes events of one account only. The next step checks the same account again.
    const found = accounts.find(({ expired }) => Boolean(expired))
    if (found !== undefined) {
      const deleted = await query<{ bytes: number }>(`
        WITH i AS (
          SELECT i.account, ${dialect.toTime('i.before')} AS before
          FROM ${dialect.jsonRows('i', { account: 'bigint', before: 'text' })})
        DELETE FROM events WHERE account_id = (SELECT i.account FROM i) AND id <= (
          SELECT max(x.id) FROM (
            SELECT e.id, e.timestamp FROM events e WHERE e.account_id = (SELECT i.account FROM i)
            ORDER BY e.id LIMIT ${EVENTS_PER_STEP}) AS x
          WHERE x.timestamp < (SELECT i.before FROM i))
        RETURNING ${bytesSql(events, 'events')} AS bytes`, [{ account: found.account, before: input.before }])
      for (const { bytes } of deleted) storedBytes.add(found.account, -bytes)
    }
    const last = accounts.length === ACCOUNTS_PER_STEP ? accounts.at(-1)!.account : undefined
    return { record: { after: found === undefined ? last : found.account - 1 } }
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Deletes the events and the idempotency records of one account that have expired by its clock. */
    deleteExpiredOf: (account: number) => Promise<void>
  }
}

/**
 * Deletes events that are older than the retention time, once an hour, and idempotency records that have expired by a
 * clock that was moved. Others are deleted in real time.
 */
export const retention = fp(async function retention (app: FastifyInstance, { days }: RetentionOptions) {
  app.decorate('deleteExpiredOf', async (account) => {
    // A request waits for it, so its steps have no pauses.
    let key: string | undefined = ''
    while (key !== undefined) {
      key = (await app.commit(deleteExpiredRecordsOfAccount, { account, after: key }, { account: null })).record
    }
    const before = beforeOf(app.clocks.now(account))
    let after: number | undefined = account - 1
    while (after !== undefined) after = await deleteSome({ after, before, only: account })
  })

  let position = 0
  startJob(app, {
    every: INTERVAL_MS,
    async step () {
      const after = await deleteSome({ after: position, before: beforeOf(Date.now()) })
      position = after ?? 0
      return after !== undefined
    },
    failure: 'cannot delete expired events'
  })

  let moved: number[] = []
  startJob(app, {
    every: INTERVAL_MS,
    async step () {
      if (moved.length === 0) moved = app.clocks.movedAccounts()
      const account = moved.pop()
      if (account !== undefined) await app.deleteExpiredOf(account)
      return moved.length > 0
    },
    failure: 'cannot delete what has expired by a moved clock'
  })

  function beforeOf (now: number): string {
    return new Date(now - days * DAY_MS).toISOString()
  }

  async function deleteSome (input: StepInput): Promise<number | undefined> {
    return (await app.commit(deleteExpiredEvents, input, { account: null })).record.after
  }
}, { name: 'retention', dependencies: ['database'] })
