import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Command } from '../database/group-commit/command.ts'
import { startJob } from '../database/job.ts'

/** Limits the deliveries that one transaction removes: few enough that no write waits noticeably for it. */
const STEP_SIZE = 500

/** Time for which a delivery that was accepted stays in its table. */
const KEPT_MS = 60 * 60 * 1000

const DAY_MS = 86_400_000

/** Interval between two cleanups. */
const CLEANUP_INTERVAL_MS = 60_000

interface Expired {
  state: 'delivered' | 'failed'
  /** The time in ms before which they finished. */
  before: number
}

/** Deletes some of the deliveries that finished before a time; the record is `true` when there may be more. */
export const deleteSettledDeliveries: Command<Expired, boolean> = {
  name: 'deleteSettledDeliveries',
  run: async ({ dialect, query }, { state, before }) => {
    const deleted = await query<object>(`
      DELETE FROM deliveries WHERE id IN (
        SELECT d.id FROM deliveries d
        WHERE d.state = '${state}' AND d.settled_at IS NOT NULL
          AND d.settled_at <= (SELECT ${dialect.toTime('i.before')} FROM ${dialect.jsonRows('i', { before: 'text' })})
        LIMIT ${STEP_SIZE} ${dialect.locking('FOR UPDATE SKIP LOCKED')})
      RETURNING id`, [{ before: new Date(before).toISOString() }])
    return { record: deleted.length === STEP_SIZE }
  }
}

/**
 * Deletes finished deliveries at an interval, in every process, also where `DELIVERY` is off: a failed one as late as
 * its event, so that a client can have it sent again.
 */
export const deliveryCleanup = fp(async function deliveryCleanup (app: FastifyInstance, { days }: { days: number }) {
  startJob(app, {
    every: CLEANUP_INTERVAL_MS,
    async step () {
      const haveMore = await Promise.all([deleteSome('delivered', KEPT_MS), deleteSome('failed', days * DAY_MS)])
      return haveMore.includes(true)
    },
    failure: 'cannot delete finished deliveries'
  })

  async function deleteSome (state: Expired['state'], keptMs: number): Promise<boolean> {
    const before = Date.now() - keptMs
    return (await app.commit(deleteSettledDeliveries, { state, before }, { account: null })).record
  }
}, { name: 'delivery-cleanup', dependencies: ['database'] })
