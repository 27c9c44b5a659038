import type { Transaction } from '../database/group-commit/transaction.ts'
import type { RecordedRequestRow } from '../generated/tables.ts'
import { linkAttempts, type Attempt } from './rules.ts'
import type { StoredFacts } from './verdict.ts'

/** A row that is not in the journal yet. */
export type NewAttempt = RecordedRequestRow & Attempt & { isKeyed: boolean }

type StoredAttempt = Attempt & Pick<RecordedRequestRow, 'attemptKey'>

/** New attempts of one request. */
interface Group { key: string, isKeyed: boolean, from: number, added: Attempt[], stored: Attempt[] }

/** A new attempt takes its place among this many stored ones: no transaction takes noticeably longer. */
const MAX_STORED = 100

/**
 * Links new attempts to those that began before them, and those that began later to the new ones. An attempt is
 * recorded late if its response took longer, or if another process recorded the others first. One that began before the
 * last `MAX_STORED` is linked to none.
 */
export async function linkNewAttempts (tx: Transaction, attempts: NewAttempt[]): Promise<void> {
  if (attempts.length === 0) return
  const groups = new Map<string, Group>()
  for (const attempt of attempts) {
    const { attemptKey: key, isKeyed, startedMs } = attempt
    const group = groups.get(key)
    if (group === undefined) {
      groups.set(key, { key, isKeyed, from: startedMs, added: [attempt], stored: [] })
    } else {
      group.from = Math.min(group.from, startedMs)
      group.added.push(attempt)
    }
  }
  const known = await storedAttempts(tx, [...groups.values()])
  const links = known.map(linkText)
  for (const attempt of known) groups.get(attempt.attemptKey)!.stored.push(attempt)
  for (const { added, stored, isKeyed } of groups.values()) {
    const from = stored.length < MAX_STORED ? 0 : Math.min(...stored.map(({ startedMs }) => startedMs))
    linkAttempts([...stored, ...added.filter(({ startedMs }) => startedMs >= from)], isKeyed)
  }
  await saveLinks(tx, known.filter((attempt, i) => linkText(attempt) !== links[i]))
}

function linkText ({ attemptOf, pauseMs, askedMs }: Attempt): string {
  return `${attemptOf} ${pauseMs} ${askedMs}`
}

/** Returns the last attempts that began before the new ones, and those after them, the last ones of each request. */
async function storedAttempts ({ dialect, query }: Transaction, groups: Group[]): Promise<StoredAttempt[]> {
  const ids = `
    SELECT x.id FROM i JOIN recorded_requests x ON x.attempt_key = i.key
    AND x.started_ms >= coalesce((SELECT max(y.started_ms) FROM recorded_requests y
      WHERE y.attempt_key = i.key AND y.started_ms <= i."from"), 0)
    AND x.started_ms >= coalesce((SELECT z.started_ms FROM recorded_requests z
      WHERE z.attempt_key = i.key ORDER BY z.started_ms DESC LIMIT 1 OFFSET ${MAX_STORED - 1}), 0)`
  const rows = await query<StoredAttempt & { facts: string }>(`
    WITH i AS (SELECT i.key, i."from" FROM ${dialect.jsonRows('i', { key: 'text', from: 'bigint' })})
    SELECT r.id, r.attempt_key AS "attemptKey", r.started_ms AS "startedMs", r.ended_ms AS "endedMs",
      r.attempt_of AS "attemptOf", r.pause_ms AS "pauseMs", r.asked_ms AS "askedMs", r.facts
    FROM recorded_requests r WHERE ${dialect.inSubquery('r.id', ids)}`,
  groups.map(({ key, from }) => ({ key, from })))
  return rows.map(({ facts, ...attempt }) =>
    ({ ...attempt, retryAfterMs: (JSON.parse(facts) as StoredFacts).retryAfterMs }))
}

async function saveLinks ({ dialect, execute }: Transaction, attempts: Attempt[]): Promise<void> {
  await execute(`
    UPDATE recorded_requests SET attempt_of = i."attemptOf", pause_ms = i."pauseMs", asked_ms = i."askedMs"
    FROM ${dialect.jsonRows('i', { id: 'bigint', attemptOf: 'bigint', pauseMs: 'bigint', askedMs: 'bigint' })}
    WHERE recorded_requests.id = i.id`, attempts)
}
