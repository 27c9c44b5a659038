import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Client, Reply } from './client.ts'
import type { ScenarioContext } from './harness.ts'
import type { Service } from './service.ts'

/**
 * Limits the times of requests to the other process, in ms. A write that needs the locked row waits for it for 3 s, its
 * last attempt for another second, and the first group for the groups before. The group of a write of another account
 * waits for a second, as may the groups before, and is halved then. A read waits for no lock.
 */
const LIMITS = { locked: 6_000, other: 4_000, read: 1_000 }

type Kind = keyof typeof LIMITS

const KINDS = Object.keys(LIMITS) as Kind[]

/** The time for which a process stands still: longer than anything may wait for it. */
const PAUSE_MS = 8_000

/** Longer than any answer takes, also on a busy machine. */
const ANSWER_TIMEOUT_MS = 60_000

/** Names the sessions of the paused process. */
const PAUSED_NAME = 'paused'

/** Some of the pauses meet a transaction that has locked the pet. */
const MAX_PAUSES = 100

interface Sent { kind: Kind, began: number, reply?: Reply }

/**
 * Pauses one of two processes while it holds locks. Requests to the other process are answered within the times that
 * the service limits waits to, those of other accounts without an error.
 */
export async function pausedProcess (context: ScenarioContext): Promise<void> {
  const { quick, report, freshUrl, start, atEnd } = context
  const url = await freshUrl()
  const paused = await start({ DATABASE_URL: `${url}?application_name=${PAUSED_NAME}` })
  const running = await start({ DATABASE_URL: url })
  const session = new pg.Client({ connectionString: url })
  await session.connect()
  atEnd(async () => { await session.end() })
  const { sent, stop } = await startRequests(context, paused, running)
  const times: Array<Record<Kind, number>> = []
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await sleep(300)
    if (!await pauseInTransaction(paused, session)) throw new Error('no pause met the lock of a pet')
    const since = performance.now()
    // The short form runs on busy machines, and only tells an answer from none.
    if (!quick) await sleep(PAUSE_MS)
    else if (!await areAnswered(sent, since)) report.violations.push('requests wait for the paused process')
    times.push(longestTimes(sent, since))
    paused.signal('SIGCONT')
    report.rounds++
  }
  await stop()
  checkAnswers(sent, report.violations)
  for (const kind of KINDS) {
    const longest = Math.max(...times.map((time) => time[kind]))
    report.notes.push(`beside a paused process, a request (${kind}) took ${longest.toFixed(0)} ms at most`)
    if (!quick && longest > LIMITS[kind]) report.violations.push(`a request (${kind}) took ${longest.toFixed(0)} ms`)
  }
}

interface Requests {
  /** The requests to the process that runs. */
  sent: Sent[]
  stop: () => Promise<void>
}

/** Starts clients that order the same pet at both processes, and others that use another account of the second one. */
async function startRequests (context: ScenarioContext, paused: Service, running: Service): Promise<Requests> {
  const { openStore, client } = context
  const store = await openStore(() => running.port, { pets: 1, units: 1_000_000 })
  const other = await openStore(() => running.port, { pets: 0 })
  const throughPaused = client(() => paused.port, { key: store.key })
  const sent: Sent[] = []
  const record = async (kind: Kind, send: () => Promise<Reply>): Promise<void> => {
    const request: Sent = { kind, began: performance.now() }
    sent.push(request)
    request.reply = await send()
    // A process that refuses at once must not be flooded.
    await sleep(5)
  }
  const order = async (via: Client, key: string): Promise<Reply> => await via.send({
    method: 'POST', path: '/store/orders', body: { petId: store.pets[0] }, headers: { 'idempotency-key': key }
  })
  const actions: Array<[clients: number, action: (key: string) => Promise<unknown>]> = [
    [6, async (key) => await order(throughPaused, key)],
    [4, async (key) => { await record('locked', async () => await order(store.client, key)) }],
    // The same request to both.
    [2, async (key) => await Promise.all([
      order(throughPaused, key), record('locked', async () => await order(store.client, key))
    ])],
    [4, async () => {
      const creation = { method: 'POST', path: '/categories', body: { name: 'Cats' } }
      await record('other', async () => await other.client.send(creation))
    }],
    [1, async () => {
      await record('read', async () => await store.client.send({ method: 'GET', path: `/pets?id=${store.pets[0]}` }))
    }]
  ]
  const stopped = new AbortController()
  let keys = 0
  const clients = actions.flatMap(([count, action]) => Array.from({ length: count }, async () => {
    while (!stopped.signal.aborted) await action(`order-${keys++}`)
  }))
  return {
    sent,
    async stop () {
      stopped.abort()
      await Promise.all(clients)
    }
  }
}

/** Pauses a process again and again until it holds the lock of a pet. @returns false without success */
async function pauseInTransaction (service: Service, session: pg.Client): Promise<boolean> {
  for (let i = 0; i < MAX_PAUSES; i++) {
    service.signal('SIGSTOP')
    // The server finishes its statements, and the pet that all clients order is locked or not.
    await sleep(100)
    const { rows } = await session.query(`
      SELECT 1 FROM pg_stat_activity JOIN pg_locks USING (pid)
      WHERE datname = current_database() AND application_name = '${PAUSED_NAME}' AND state = 'idle in transaction'
        AND relation = 'pets'::regclass AND mode = 'RowShareLock' AND granted`)
    if (rows.length > 0) return true
    service.signal('SIGCONT')
    await sleep(Math.random() * 50)
  }
  return false
}

/**
 * Waits until the requests that were sent before a time are answered, and one of each kind that was sent later.
 *
 * @returns false if they are not
 */
async function areAnswered (sent: Sent[], since: number): Promise<boolean> {
  const isAnswered = (kind: Kind): boolean =>
    sent.some((request) => request.kind === kind && request.began > since && request.reply !== undefined)
  for (const deadline = performance.now() + ANSWER_TIMEOUT_MS; performance.now() < deadline;) {
    if (KINDS.every(isAnswered) && sent.every(({ began, reply }) => began > since || reply !== undefined)) return true
    await sleep(50)
  }
  return false
}

/** Returns the longest time of the requests of each kind that were in flight at a time or later. */
function longestTimes (sent: Sent[], since: number): Record<Kind, number> {
  const longest: Record<Kind, number> = { locked: 0, other: 0, read: 0 }
  const now = performance.now()
  for (const { kind, began, reply } of sent) {
    const took = reply?.took ?? now - began
    if (began + took > since) longest[kind] = Math.max(longest[kind], took)
  }
  return longest
}

/** Checks that only writes that need the locked row are refused. */
function checkAnswers (sent: Sent[], violations: string[]): void {
  for (const { kind, reply } of sent) {
    const { status, text } = reply!
    const isExpected = status === 200 || status === 201 || (kind === 'locked' && (status === 409 || status === 503))
    if (!isExpected) violations.push(`a request (${kind}) is answered ${status} ${text}`)
  }
}
