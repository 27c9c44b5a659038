import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Command } from '../database/group-commit/command.ts'
import { deleteSettledDeliveries } from '../deliveries/complete.ts'

export interface RetentionOptions {
  /** How long events are kept. */
  days: number
}

/** How often it is looked for what is too old, in ms. */
const SWEEP_MS = 60_000

/** Accounts are gone through once in so many looks, because the oldest event of each has to be asked for. */
const EVENTS_EVERY = 60

/** Accounts looked at, and events removed, in one transaction: few enough that no write waits noticeably. */
const ACCOUNTS = 200
const EVENTS = 500

const DAY_MS = 86_400_000

interface Step {
  /** Where the accounts are gone on from; `undefined` when all were looked at. */
  after: number | undefined
}

/**
 * Removes some of the events that are older than `before`, always the oldest of an account, so that its
 * feed keeps no gap.
 */
export const deleteExpiredEvents: Command<{ after: number, before: string }, Step> = {
  name: 'forgetEvents',
  async run ({ dialect, query, execute }, inputs) {
    const outcomes: Array<{ record: Step }> = []
    for (const input of inputs) {
      const accounts = await query<{ account: number, old: boolean | number | null }>(`
        WITH i AS (SELECT i.after, ${dialect.toTime('i.before')} AS before FROM ${dialect.jsonRows('i', { after: 'bigint', before: 'text' })}),
        seen AS (SELECT a.id FROM accounts a WHERE a.id > (SELECT i.after FROM i) ORDER BY a.id LIMIT ${ACCOUNTS})
        SELECT s.id AS account, (SELECT e.timestamp FROM events e WHERE e.account_id = s.id ORDER BY e.id LIMIT 1) < (SELECT i.before FROM i) AS old
        FROM seen s ORDER BY s.id`, [input])
      // The first account that has some: one at a time, and then the same again.
      const found = accounts.find(({ old }) => Boolean(old))
      if (found !== undefined) {
        await execute(`
          WITH i AS (SELECT i.account, ${dialect.toTime('i.before')} AS before FROM ${dialect.jsonRows('i', { account: 'bigint', before: 'text' })})
          DELETE FROM events WHERE account_id = (SELECT i.account FROM i) AND id <= (
            SELECT max(x.id) FROM (
              SELECT e.id, e.timestamp FROM events e WHERE e.account_id = (SELECT i.account FROM i) ORDER BY e.id LIMIT ${EVENTS}) AS x
            WHERE x.timestamp < (SELECT i.before FROM i))`, [{ account: found.account, before: input.before }])
      }
      const after = found !== undefined ? found.account - 1 : accounts.length === ACCOUNTS ? accounts.at(-1)!.account : undefined
      outcomes.push({ record: { after } })
    }
    return outcomes
  }
}

/** Removes what is too old: events, and deliveries that were settled a while ago. */
export const retention = fp(async function retention (app: FastifyInstance, { days }: RetentionOptions) {
  let sweeps = 0
  let sweeping = false
  const timer = setInterval(() => {
    if (sweeping) return
    sweeping = true
    sweep(sweeps++ % EVENTS_EVERY === 0)
      .catch((error: unknown) => { app.log.warn({ err: error }, 'could not remove what is too old') })
      .finally(() => { sweeping = false })
  }, SWEEP_MS)
  timer.unref()
  app.addHook('preClose', async () => { clearInterval(timer) })

  async function sweep (events: boolean): Promise<void> {
    while ((await app.commit(deleteSettledDeliveries, {}, { account: null })).record) continue
    const before = new Date(Date.now() - days * DAY_MS).toISOString()
    let after: number | undefined = events ? 0 : undefined
    while (after !== undefined) after = (await app.commit(deleteExpiredEvents, { after, before }, { account: null })).record.after
  }
}, { name: 'retention', dependencies: ['database'] })
