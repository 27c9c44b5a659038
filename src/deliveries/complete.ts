import { timeText } from '../database/account-clocks.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { forUpdate } from '../database/unit-of-work/write.ts'
import { messages, webhooks } from '../generated/tables.ts'
import { updateMessageStatuses, type MessageStep } from '../messages/delivery-status.ts'
import type { DeliveryResult } from '../monitoring/instrumentation.ts'
import { targetsOf, type Target } from './claim-targets.ts'
import { deleteOldFailures } from './failed-deliveries.ts'
import { streakAfter } from './failure-streak.ts'
import { dueBeforeLease, hasLease } from './leases.ts'
import { insertAttempts, type NewAttempt } from './store-attempts.ts'

/** The result of a claimed delivery. */
export interface Completion {
  id: number
  account: number
  webhookId: number
  /** The lease under which it was sent. */
  lease: string
  /** Position of the message whose status depends on the delivery. */
  message: number | null
  /** The address that was called; none for an event that is no longer stored. */
  url: string | undefined
  /** `returned` when the event was not sent, or the request was aborted: the attempt does not count. */
  result: DeliveryResult
  attempt?: NewAttempt
  /** When a returned delivery is due; by default, as before. */
  dueAt?: string
}

/** Stores the results of deliveries. Ignores a delivery that was claimed again in the meantime. */
export const completeDeliveries: Command<Completion, undefined> = {
  name: 'completeDeliveries',
  needs: ({ account, webhookId, message }) => ({
    account, needs: [forUpdate(webhooks, webhookId), ...message === null ? [] : [forUpdate(messages, message)]]
  }),
  async runAll (tx, completions) {
    const targets = targetsOf(tx, completions)
    const valid = completions.map((completion) => {
      const dated = byClockOf(tx, completion)
      return isGoneElsewhere(dated, targets) ? retryNow(dated, tx.now(dated.account)) : dated
    })
    const stored = await storeResults(tx, valid)
    const own = valid.filter(({ id }) => stored.has(id))
    await storeAttempts(tx, own, targets)
    await deleteOldFailures(tx, own.filter(({ result }) => hasFailed(result)).map(({ webhookId }) => webhookId))
    const steps = own.flatMap(({ message, result }): MessageStep[] => {
      if (message === null || result === 'returned') return []
      const outcome = result === 'accepted' ? 'accepted' : result === 'retry' ? 'attempted' : 'failed'
      return [{ position: message, outcome }]
    })
    const events = await updateMessageStatuses(tx, steps)
    return valid.map((_completion, i): CommandResult<undefined> =>
      ({ record: undefined, events: i === 0 ? events : [] }))
  }
}

/** Tells whether the delivery stays in the queue. */
function isPending (result: DeliveryResult): boolean {
  return result === 'retry' || result === 'returned'
}

function hasFailed (result: DeliveryResult): boolean {
  return !isPending(result) && result !== 'accepted'
}

/** Returns the completion with the times of its attempt by the clock of the account. Workers measure real time. */
function byClockOf (tx: Transaction, completion: Completion): Completion {
  const { account, attempt, dueAt } = completion
  const offset = tx.clockOffset(account)
  if (offset === 0) return completion
  const ahead = (time: string): string => timeText(Date.parse(time) + offset)
  if (dueAt !== undefined) return { ...completion, dueAt: ahead(dueAt) }
  if (attempt === undefined) return completion
  const { at, nextTryAt } = attempt
  const dated = { ...attempt, at: ahead(at), ...nextTryAt === undefined ? {} : { nextTryAt: ahead(nextTryAt) } }
  return { ...completion, attempt: dated }
}

/** Tells whether a 410 came from an address that the webhook has left in the meantime: it is valid only for that. */
function isGoneElsewhere ({ result, url, webhookId }: Completion, targets: Map<number, Target>): boolean {
  return result === 'gone' && targets.get(webhookId)?.url !== url
}

/** Repeats the delivery at once; a test is sent only once. */
function retryNow (completion: Completion, now: string): Completion {
  const { attempt } = completion
  if (attempt === undefined || attempt.eventId === 0) return { ...completion, result: 'exhausted' }
  return { ...completion, result: 'retry', attempt: { ...attempt, nextTryAt: now } }
}

/** @returns the ids of the deliveries whose leases still lasted */
async function storeResults (
  { dialect, query, startedAt }: Transaction, completions: Completion[]
): Promise<Set<number>> {
  const columns = dialect.jsonRows('i', {
    id: 'bigint', lease: 'text', state: 'text', uncounted: 'bigint', at: 'text', settledAt: 'text'
  })
  const rows = await query<{ id: number }>(`
    UPDATE deliveries SET state = ${dialect.toEnum('i.state', 'delivery_state')}, leased_by = NULL,
      attempts = deliveries.attempts - i.uncounted,
      next_try_at = coalesce(${dialect.toTime('i.at')}, ${dueBeforeLease(dialect)}),
      settled_at = ${dialect.toTime('i."settledAt"')}
    FROM ${columns}
    WHERE deliveries.id = i.id AND ${hasLease('i.lease')}
    RETURNING deliveries.id`, completions.map((completion) => rowOf(completion, startedAt)))
  return new Set(rows.map(({ id }) => id))
}

function rowOf ({ id, lease, result, attempt, dueAt }: Completion, now: string): object {
  return {
    id,
    lease,
    state: isPending(result) ? 'waiting' : result === 'accepted' ? 'delivered' : 'failed',
    uncounted: result === 'returned' ? 1 : 0,
    // A returned delivery keeps its place, unless a fault moves it.
    at: result === 'returned' ? dueAt ?? null : attempt?.nextTryAt ?? now,
    settledAt: isPending(result) ? null : now
  }
}

/**
 * Stores the attempts, and disables a webhook whose receiver answered 410, or has failed for long. Attempts are not
 * part of the record of a webhook, so they leave its version alone.
 */
async function storeAttempts (tx: Transaction, completions: Completion[], targets: Map<number, Target>): Promise<void> {
  const called = [...targets.values()].flatMap((target) => {
    const own = completions.filter(({ attempt, webhookId }) => attempt !== undefined && webhookId === target.id)
    return own.length === 0 ? [] : [{ target, own }]
  })
  const counters = await insertAttempts(tx, called.map(({ target, own }) => ({
    ...target, webhookId: target.id, attempts: own.map(({ attempt }) => attempt!)
  })))
  called.forEach(({ target, own }, i) => {
    const { accountId, enabled, version } = target
    const ofAddress = own.filter(({ url }) => url === target.url)
    const { hasFailedForLong, ...streak } = ofAddress.reduce(streakAfter, {
      failures: target.failures, failingSince: target.failingSince, hasFailedForLong: false
    })
    const isGone = hasFailedForLong || own.some(({ result }) => result === 'gone')
    const end = isGone ? { gone: true, enabled: false, version: enabled ? version + 1 : version } : {}
    tx.rows(accountId).amend(webhooks, target, { ...counters[i], ...streak, ...end })
  })
}
