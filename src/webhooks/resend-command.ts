import type { FastifyError } from 'fastify'
import { oncePerDialect } from '../database/dialect.ts'
import { etagOf } from '../database/record.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { DELIVERY_LIFETIME_MS, isInState, needsWebhook } from '../deliveries/enqueue.ts'
import { ValidationFailed, withProblem } from '../errors.ts'
import { EventsExpired } from '../events/errors.ts'
import { describeStored, resolveStartPosition, type FeedState } from '../events/rules.ts'
import { webhooks } from '../generated/tables.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { UnknownEvent, WebhookNotFound } from './errors.ts'
import { MAX_RESENT_EVENTS, type Resend, type ResentEvents } from './schemas.ts'

export interface ResendInput {
  account: number
  webhookId: number
  conditions: Conditions
  selection: Resend
}

/**
 * Enqueues events for a webhook again, in their order. An event that waits for its first attempt, or is in flight, is
 * not enqueued a second time. One that waits for a retry, or has failed, starts again in the row that it has.
 */
export const resendEvents: Command<ResendInput, ResentEvents> = {
  name: 'resendEvents',
  // Its 10,000 rows take a while.
  runsAlone: true,
  needs: needsWebhook,
  run: resend
}

async function resend (tx: Transaction, input: ResendInput): Promise<CommandResult<ResentEvents>> {
  const { account, webhookId, conditions, selection } = input
  const webhook = tx.rows(account).get(webhooks, webhookId)
  if (webhook === undefined) return new WebhookNotFound()
  const failed = checkPreconditions(conditions, etagOf(webhook.version))
  if (failed !== undefined) return failed
  const numbers = numbersOf(selection, await findFeed(tx, account))
  if (numbers instanceof Error) return numbers
  const [from, to] = numbers
  const types = (JSON.parse(webhook.events) as string[]).filter((type) => selection.types?.includes(type) ?? true)
  if (!webhook.enabled || types.length === 0 || to < from) return { record: { queued: 0 } }
  const range = {
    account,
    webhook: webhookId,
    from,
    to,
    types: JSON.stringify(types),
    now: tx.now(account),
    giveUp: tx.now(account, DELIVERY_LIFETIME_MS)
  }
  const { restartFailed, restartRetries, enqueueOthers } = sqlOf(tx.dialect)
  let queued = 0
  for (const sql of [restartFailed, restartRetries, ...selection.only === 'failed' ? [] : [enqueueOthers]]) {
    queued += (await tx.query<object>(sql, [range])).length
  }
  return { record: { queued }, changes: { deliveries: [] } }
}

/** Returns the numbers of the first and the last selected event. The first is greater if no event is selected. */
function numbersOf (
  { eventId, from, to }: Resend, stored: FeedState
): [first: number, last: number] | FastifyError {
  const named = [eventId, from, to].filter((number) => number !== undefined)
  if (Math.max(0, ...named) > stored.newest) return new UnknownEvent(stored.newest)
  if (named.length > 0 && resolveStartPosition(stored, Math.min(...named) - 1) === 'expired') {
    return new EventsExpired(describeStored(stored))
  }
  const last = Math.min(eventId ?? Infinity, to ?? stored.newest)
  const oldest = Math.max(stored.oldest ?? last + 1, last - MAX_RESENT_EVENTS + 1)
  const first = Math.max(eventId ?? 0, from ?? oldest)
  if (last - first < MAX_RESENT_EVENTS) return [first, last]
  const rule = `to must be at most ${MAX_RESENT_EVENTS - 1} more than from; by default, it is the newest event`
  return withProblem(new ValidationFailed(rule), '/body/to', 'maximum')
}

async function findFeed ({ dialect, query }: Transaction, account: number): Promise<FeedState> {
  const [feed] = await query<{ newest: number, oldest: number | null }>(`
    SELECT a.last_event_id AS newest, (SELECT e.id FROM events e WHERE e.account_id = a.id ORDER BY e.id LIMIT 1) AS oldest
    FROM accounts a WHERE a.id = (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`, [{ account }])
  return { newest: feed!.newest, oldest: feed!.oldest ?? undefined }
}

/** Returns the statements, each of which returns a row for each event that it enqueues. */
const sqlOf = oncePerDialect((dialect) => {
  const withRange = `
    WITH i AS (
      SELECT i.account, i.webhook, i."from" AS first, i."to" AS last, i.types, ${dialect.toTime('i.now')} AS now,
        ${dialect.toTime('i."giveUp"')} AS give_up
      FROM ${dialect.jsonRows('i', {
        account: 'bigint',
        webhook: 'bigint',
        from: 'bigint',
        to: 'bigint',
        types: 'text',
        now: 'text',
        giveUp: 'text'
      })})`
  // Subqueries: a join would make PostgreSQL expect 100 ranges.
  const of = (column: string): string => `(SELECT i.${column} FROM i)`
  const inRange = (column: string): string => `${column} BETWEEN ${of('first')} AND ${of('last')}`
  const isOfType = `${of('types')} LIKE '%"' || e.type || '"%'`
  const isOf = (state: 'waiting' | 'failed'): string =>
    `d.webhook_id = ${of('webhook')} AND ${isInState(dialect, state)}`
  // By subqueries: without statistics, PostgreSQL compares all pairs of a join. That of `restart` looks up an event for
  // each delivery; that of NOT IN runs once.
  const restart = (state: 'waiting' | 'failed', condition: string, changes: string): string => `${withRange}
    UPDATE deliveries SET attempts = 0, next_try_at = ${of('now')}, give_up_at = ${of('give_up')}${changes}
    WHERE ${dialect.inSubquery('id', `
      SELECT d.id FROM deliveries d WHERE ${isOf(state)} AND ${inRange('d.event_id')} ${condition}
        AND (SELECT ${isOfType} FROM events e WHERE e.account_id = ${of('account')} AND e.id = d.event_id)`)}
    RETURNING id`
  return {
    // The status of a message is final once one of its deliveries has failed.
    restartFailed: restart('failed', '', `, state = ${dialect.toEnum("'waiting'", 'delivery_state')}, settled_at = NULL,
      message_position = NULL`),
    restartRetries: restart('waiting', 'AND d.attempts > 0 AND d.leased_by IS NULL', ''),
    enqueueOthers: `${withRange}
      INSERT INTO deliveries (account_id, webhook_id, event_id, next_try_at, give_up_at)
      SELECT ${of('account')}, ${of('webhook')}, e.id, ${of('now')}, ${of('give_up')} FROM events e
      WHERE e.account_id = ${of('account')} AND ${inRange('e.id')} AND ${isOfType}
        AND e.id NOT IN (SELECT d.event_id FROM deliveries d WHERE ${isOf('waiting')} AND ${inRange('d.event_id')})
      ORDER BY e.id
      RETURNING id`
  }
})
