import { nextVersion, nextVersionSql } from '../database/record.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { messageRecord } from './queries.ts'
import { nextMessageStatus, type DeliveryOutcome, type MessageProgress } from './rules.ts'
import { messageEvents, type Message } from './schemas.ts'

/** Limits the messages that one statement marks as delivered. */
const SETTLE_SIZE = 1_000

/**
 * Marks messages that no webhook subscribes to as delivered; the record is `true` when there may be more.
 * `upTo` is the position of a committed message: of a message that the same transaction creates, the number of
 * deliveries is not known yet.
 */
export const deliverUnsubscribedMessages: Command<{ upTo: number }, boolean> = {
  name: 'deliverUnsubscribedMessages',
  async run ({ dialect, query, advanceClock }, input) {
    // Each account before its messages. An account that the lab has locked is left to a later pass.
    const lockBoth = dialect.locking('FOR KEY SHARE OF a SKIP LOCKED FOR UPDATE OF m SKIP LOCKED')
    const delivered = await query<{ position: number, account: number, record: string }>(`
      WITH due AS (
        SELECT m.position FROM messages m CROSS JOIN accounts a
        WHERE a.id = m.account_id AND m.status = 'queued' AND m.waiting = 0
          AND m.position <= (SELECT i."upTo" FROM ${dialect.jsonRows('i', { upTo: 'bigint' })})
        ORDER BY m.position LIMIT ${SETTLE_SIZE} ${lockBoth})
      UPDATE messages SET status = ${dialect.toEnum("'delivered'", 'message_status')}, version = ${nextVersionSql('version', 'version_floor')}
      WHERE ${dialect.inSubquery('position', 'SELECT due.position FROM due')}
      RETURNING position, account_id AS account, ${messageRecord(dialect, 'messages')} AS record`, [input])
    if (delivered.length === 0) return { record: false }
    // The statement before may not see a move of a clock that was committed while it looked for messages.
    const ids = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
    const clocks = await query<{ id: number, ahead: number }>(`
      SELECT a.id, a.clock_offset_seconds AS ahead ${dialect.fromByIds('accounts', 'a', 'id', ids)}`,
    distinct(delivered.map(({ account }) => ({ id: account }))))
    for (const { id, ahead } of clocks) advanceClock(id, ahead * 1000)
    delivered.sort((a, b) => a.position - b.position)
    const events = delivered.map(({ account, record }) =>
      ({ account, ...messageEvents.delivered({ message: JSON.parse(record) as Message }) }))
    return { record: delivered.length === SETTLE_SIZE, events }
  }
}

/** One delivery's outcome for its message, which is identified by its position. */
export interface MessageStep {
  position: number
  outcome: DeliveryOutcome
}

interface TrackedMessage extends MessageProgress {
  position: number
  account: number
  version: number
  versionFloor: number
  record: string
}

/**
 * Applies the outcomes of deliveries to their messages, in order, and returns the events of messages whose status
 * changed. The group holds the locks of the webhooks, and of all messages that other commands of it change.
 */
export async function updateMessageStatuses (tx: Transaction, steps: MessageStep[]): Promise<NewEvent[]> {
  if (steps.length === 0) return []
  const { dialect, execute } = tx
  const before = await loadMessages(tx, steps)
  const after = new Map(before.map((message) => [message.position, { ...message }]))
  const changed = new Set<TrackedMessage>()
  for (const { position, outcome } of steps) {
    const message = after.get(position)
    if (message === undefined) continue
    const next = nextMessageStatus(message, outcome)
    if (next.status === message.status && next.waiting === message.waiting) continue
    const changes = next.status !== message.status
    const version = changes ? nextVersion(message.version, message.versionFloor) : message.version
    Object.assign(message, next, { version })
    changed.add(message)
  }
  const columns = dialect.jsonRows('i', { position: 'bigint', status: 'text', waiting: 'bigint', version: 'bigint' })
  await execute(`
    UPDATE messages
    SET status = ${dialect.toEnum('i.status', 'message_status')}, waiting = i.waiting, version = i.version
    FROM ${columns}
    WHERE messages.position = i.position`,
  [...changed].map(({ position, status, waiting, version }) => ({ position, status, waiting, version })))
  return before.flatMap((message) => {
    const { account, status, record } = after.get(message.position)!
    if (status === message.status) return []
    const createEvent = messageEvents[status as Exclude<keyof typeof messageEvents, 'created'>]
    return [{ account, ...createEvent({ message: { ...JSON.parse(record) as Message, status } }) }]
  })
}

async function loadMessages ({ dialect, query }: Transaction, steps: MessageStep[]): Promise<TrackedMessage[]> {
  return await query<TrackedMessage>(`
    SELECT m.position, m.account_id AS account, CAST(m.status AS text) AS status, m.waiting, m.version,
      m.version_floor AS "versionFloor",
      ${messageRecord(dialect, 'm')} AS record
    FROM messages m WHERE m.position IN (SELECT i.position FROM ${dialect.jsonRows('i', { position: 'bigint' })})
    ORDER BY m.position ${dialect.locking('FOR UPDATE')}`, distinct(steps.map(({ position }) => ({ position }))))
}
