import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { HEAD_OF_QUEUE } from './enqueue.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { DeliveryOutcome } from '../messages/rules.ts'
import { updateMessageStatuses } from '../messages/delivery-status.ts'
import type { WebhookAttempt } from './schemas.ts'

/** What became of a delivery that a worker had taken. */
export interface Completion {
  id: number
  webhookId: number
  worker: string
  message: number | null
  /** The address that was called. */
  url: string
  /** `released` when it was not sent, or not to the end: it counts for nothing. */
  result: 'accepted' | 'again' | 'givenUp' | 'gone' | 'released'
  attempt?: WebhookAttempt
}

/** Attempts shown with a webhook. */
const SHOWN = 20

/** Notes what became of deliveries; of one that another worker has meanwhile taken, nothing. */
export const completeDeliveries: Command<Completion, undefined> = {
  name: 'settleDeliveries',
  rows: ({ webhookId }) => ({ webhooks: [webhookId] }),
  async run (tx, asked) {
    const { dialect, query, now } = tx
    const webhooks = await loadTargets(tx, asked)
    const inputs = asked.map((settlement) => isOutdated(settlement, webhooks) ? triedAgain(settlement, now) : settlement)
    const settled = new Set((await query<{ id: number }>(`
      UPDATE deliveries SET state = ${dialect.toEnum('i.state', 'delivery_state')}, leased_by = NULL, attempts = deliveries.attempts - i.untried,
        next_try_at = ${dialect.toTime('i.at')}, settled_at = ${dialect.toTime('i."settledAt"')}
      FROM ${dialect.jsonRows('i', { id: 'bigint', worker: 'text', state: 'text', untried: 'bigint', at: 'text', settledAt: 'text' })}
      WHERE deliveries.id = i.id AND deliveries.leased_by = i.worker
      RETURNING deliveries.id`, inputs.map((input) => rowOf(input, now)))).map(({ id }) => id))
    const mine = inputs.filter(({ id }) => settled.has(id))
    await noteAttempts(tx, mine, webhooks)
    const steps = mine.flatMap(({ message, result }): Array<{ position: number, outcome: DeliveryOutcome }> => {
      if (message === null || result === 'again' || result === 'released') return []
      return [{ position: message, outcome: result === 'accepted' ? 'accepted' : 'failed' }]
    })
    const events = await updateMessageStatuses(tx, steps)
    return inputs.map((_input, i): CommandResult<undefined> => ({ record: undefined, events: i === 0 ? events : [] }))
  }
}

interface Target { id: number, url: string, attempts: string, version: number }

async function loadTargets ({ dialect, query }: Transaction, settled: Completion[]): Promise<Map<number, Target>> {
  const rows = await query<Target>(`
    SELECT w.id, w.url, w.attempts, w.version FROM webhooks w
    WHERE w.id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})`, distinct(settled.map(({ webhookId }) => ({ id: webhookId }))))
  return new Map(rows.map((row) => [row.id, row]))
}

/** 410 speaks for an address; the webhook may have moved to another meanwhile. */
function isOutdated ({ result, url, webhookId }: Completion, webhooks: Map<number, Target>): boolean {
  return result === 'gone' && webhooks.get(webhookId)?.url !== url
}

/** A test is sent once. */
function triedAgain (settlement: Completion, now: string): Completion {
  const { attempt } = settlement
  return attempt === undefined || attempt.eventId === 0 ? { ...settlement, result: 'givenUp' } : { ...settlement, result: 'again', attempt: { ...attempt, nextTryAt: now } }
}

function rowOf ({ id, worker, result, attempt }: Completion, now: string): object {
  const waits = result === 'again' || result === 'released'
  return {
    id,
    worker,
    state: waits ? 'waiting' : result === 'accepted' ? 'delivered' : 'failed',
    untried: result === 'released' ? 1 : 0,
    // What was not sent keeps its place before newer events.
    at: result === 'released' ? HEAD_OF_QUEUE : attempt?.nextTryAt ?? now,
    settledAt: waits ? null : now
  }
}

/** The webhooks show their attempts, and one that answered 410 is switched off. */
async function noteAttempts ({ dialect, execute }: Transaction, settled: Completion[], webhooks: Map<number, Target>): Promise<void> {
  const tried = settled.filter(({ attempt }) => attempt !== undefined)
  const noted = [...webhooks.values()].flatMap(({ id, attempts, version }) => {
    const own = tried.filter(({ webhookId }) => webhookId === id)
    if (own.length === 0) return []
    const gone = own.some(({ result }) => result === 'gone')
    const shown = [...own.map(({ attempt }) => attempt!).reverse(), ...JSON.parse(attempts) as WebhookAttempt[]].slice(0, SHOWN)
    return [{ id, gone, attempts: JSON.stringify(shown), version: version + 1 }]
  })
  await execute(`
    UPDATE webhooks SET attempts = i.attempts, version = i.version, gone = webhooks.gone OR i.gone, enabled = webhooks.enabled AND NOT i.gone
    FROM ${dialect.jsonRows('i', { id: 'bigint', gone: 'boolean', attempts: 'text', version: 'bigint' })}
    WHERE webhooks.id = i.id`, noted)
}
