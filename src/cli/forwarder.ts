import { setTimeout as sleep } from 'node:timers/promises'
import type { Event } from '../client/client.ts'
import type { WebhookClient, WebhookResponse } from '../deliveries/http-client.ts'
import { classifyResponse, nextAttemptAt, retryAfterOf } from '../deliveries/retry-policy.ts'
import { OperationalError } from '../operational-error.ts'

/** Pauses between the attempts for an event, in ms: they end after a minute, because a person watches. */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000]

/** A receiver that asks for longer pauses gets its last attempt after this time, in ms. */
const LIFETIME_MS = 300_000

/** Limits the events that wait for a retry. Beyond it, the next event waits as well. */
const MAX_WAITING = 1_000

interface ForwarderOptions {
  client: WebhookClient
  /** The address that receives the events. */
  url: string
  secret: string
  account: number
  print: (line: string) => void
  /** Ends the forwarding. Aborted with an OperationalError when the receiver wants no more events. */
  stop: AbortController
}

/** Sends an event. Resolves after the first attempt; others follow in the background. Never rejects. */
export type Forward = (event: Event) => Promise<void>

/** Sends events to a receiver as the service sends them to a webhook, and prints a line for each attempt. */
export function createForwarder ({ client, url, secret, account, print, stop }: ForwarderOptions): Forward {
  const waiting = new Set<Promise<void>>()
  const { signal } = stop

  /**
   * Times are by `performance.now()`.
   *
   * @returns the time of the next attempt; `undefined` when there is none
   */
  async function attempt (event: Event, attempts: number, expiresAt: number): Promise<number | undefined> {
    const startedAt = performance.now()
    const request = { url, id: `evt_${account}_${event.id}`, body: JSON.stringify(event), secrets: [secret] }
    const response = await client.send(request, signal).catch(() => undefined)
    if (response === undefined) return undefined
    const now = performance.now()
    const line = `${event.id} ${event.type} ${describe(response)} (${Math.round(now - startedAt)} ms)`
    const result = classifyResponse(response.status)
    if (result !== 'refused') {
      print(line)
      if (result === 'gone') {
        stop.abort(new OperationalError('The receiver responded with 410, so it wants no more events.'))
      }
      return undefined
    }
    const retryAfter = retryAfterOf(response.retryAfter, Date.now())
    const next = nextAttemptAt({ attempts, now, expiresAt, retryAfter, random: Math.random(), schedule: PAUSES_MS })
    print(`${line}, ${next === undefined ? `given up after ${attempts} attempts` : `again in ${seconds(next - now)} s`}`)
    return next
  }

  async function retry (event: Event, first: number, expiresAt: number): Promise<void> {
    let next: number | undefined = first
    for (let attempts = 2; next !== undefined && !signal.aborted; attempts++) {
      await sleep(next - performance.now(), undefined, { signal }).catch(() => {})
      next = signal.aborted ? undefined : await attempt(event, attempts, expiresAt)
    }
  }

  return async (event) => {
    while (waiting.size >= MAX_WAITING) await Promise.race(waiting)
    const expiresAt = performance.now() + LIFETIME_MS
    const next = await attempt(event, 1, expiresAt)
    if (next === undefined) return
    const retried = retry(event, next, expiresAt).finally(() => { waiting.delete(retried) })
    waiting.add(retried)
  }
}

function describe ({ status, error = '' }: WebhookResponse): string {
  return status === undefined ? error : String(status)
}

function seconds (ms: number): string {
  return (ms / 1_000).toFixed(1)
}
