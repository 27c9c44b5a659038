import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Command } from '../database/group-commit/command.ts'
import { startSweep } from '../database/sweep.ts'

/** Limits the deliveries that one transaction removes, so that writes between two steps get their turn. */
const STEP_SIZE = 500

/** Time for which a finished delivery stays in its table. */
const KEPT_MS = 60 * 60 * 1000

/** Interval between two cleanups. */
const CLEANUP_INTERVAL_MS = 60_000

/** Deletes some of the deliveries that finished before `KEPT_MS`; the record is `true` when there may be more. */
export const deleteSettledDeliveries: Command<object, boolean> = {
  name: 'deleteSettledDeliveries',
  async run ({ dialect, query, startedAt }, inputs) {
    const before = new Date(Date.parse(startedAt) - KEPT_MS).toISOString()
    const deleted = await query<object>(`
      DELETE FROM deliveries WHERE id IN (
        SELECT d.id FROM deliveries d
        WHERE d.settled_at IS NOT NULL
          AND d.settled_at <= (SELECT ${dialect.toTime('i.before')} FROM ${dialect.jsonRows('i', { before: 'text' })})
        LIMIT ${STEP_SIZE} ${dialect.forUpdateSkipLocked})
      RETURNING id`, [{ before }])
    return inputs.map(() => ({ record: deleted.length === STEP_SIZE }))
  }
}

/** Deletes finished deliveries at an interval, in every process, also where `DELIVERY` is off. */
export const deliveryCleanup = fp(async function deliveryCleanup (app: FastifyInstance) {
  startSweep(app, deleteAllSettled, { intervalMs: CLEANUP_INTERVAL_MS, failure: 'cannot delete finished deliveries' })

  async function deleteAllSettled (): Promise<void> {
    while ((await app.commit(deleteSettledDeliveries, {}, { account: null })).record) continue
  }
}, { name: 'delivery-cleanup', dependencies: ['database'] })
