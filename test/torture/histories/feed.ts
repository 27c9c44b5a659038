import { canonical, type Event, type Operation } from './operation.ts'
import type { Timed } from './search.ts'

/** The feed of an account, as clients saw it. */
export interface Feed {
  /** All events, read after the last operation. */
  events: Event[]
  /** What clients read of it meanwhile. */
  polls: Poll[]
}

/** One `GET /events?after=…&limit=…`. */
export interface Poll extends Timed {
  after: number
  limit: number
  /** The events, each with a text of all its members. */
  found: Array<{ id: number, text: string }>
  /** The header `Event-Id`: the newest event of the account. */
  newest: number
}

/** Limits the violations of one kind. Most of the others repeat them. */
const MAX_SHOWN = 3

/**
 * Checks the feed as a witness of one order of all objects: its ids are gapless, an operation comes after each one that
 * was answered before it was called, and a client never reads an older feed than one that was acknowledged before.
 *
 * @param written the events of each operation
 */
export function checkFeed (
  history: readonly Operation[], written: ReadonlyMap<Operation, Event[]>, { events, polls }: Feed
): string[] {
  const gap = events.findIndex(({ id }, i) => id !== i + 1)
  if (gap >= 0) return [`the feed has event ${events[gap]!.id} in place of event ${gap + 1}`]
  const certain = withoutTwins(history, written)
  return [...checkOrder(certain).slice(0, MAX_SHOWN), ...checkPolls(polls, certain, events).slice(0, MAX_SHOWN)]
}

/** An operation with the ids of its first and last event. */
interface Effect extends Timed { operation: Operation, first: number, last: number }

/** Leaves out operations of which another one on the same object wrote the same: either may have come first. */
function withoutTwins (history: readonly Operation[], written: ReadonlyMap<Operation, Event[]>): Effect[] {
  const textOf = ({ object }: Operation, events: Event[]): string =>
    canonical([object, ...events.map(({ type, data }) => [type, data])])
  const counts = new Map<string, number>()
  for (const [operation, events] of written) {
    const text = textOf(operation, events)
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return history.flatMap((operation) => {
    const events = written.get(operation)
    if (events === undefined || counts.get(textOf(operation, events)) !== 1) return []
    const { call, return: end } = operation
    return [{ operation, call, return: end, first: events[0]!.id, last: events.at(-1)!.id }]
  })
}

/** Returns a function that finds the newest effect that was acknowledged before a time. */
function acknowledgedBefore (effects: readonly Effect[]): (time: number) => Effect | undefined {
  const byEnd = effects.filter((effect) => effect.return !== Infinity).sort((a, b) => a.return - b.return)
  const newest: Effect[] = []
  for (const effect of byEnd) {
    const before = newest.at(-1)
    newest.push(before === undefined || effect.last > before.last ? effect : before)
  }
  return (time) => {
    let [low, high] = [0, byEnd.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (byEnd[middle]!.return < time) low = middle + 1
      else high = middle
    }
    return newest[low - 1]
  }
}

function checkOrder (effects: readonly Effect[]): string[] {
  const newestBefore = acknowledgedBefore(effects)
  return effects.flatMap((effect) => {
    const before = newestBefore(effect.call)
    if (before === undefined || before.last < effect.first) return []
    return [`the feed is not in the order of the answers: event ${before.last} (${nameOf(before)}) was acknowledged ` +
      `${(effect.call - before.return).toFixed(1)} ms before the request of event ${effect.first} (${nameOf(effect)})`]
  })
}

function checkPolls (polls: readonly Poll[], effects: readonly Effect[], events: readonly Event[]): string[] {
  const newestBefore = acknowledgedBefore(effects)
  const later = effects.toSorted((a, b) => a.call - b.call)
  const oldestAfter = new Map<Effect, number>()
  let oldest = Infinity
  for (const effect of later.toReversed()) oldestAfter.set(effect, oldest = Math.min(oldest, effect.first))
  return polls.flatMap(({ call, return: end, after, limit, found, newest }) => {
    const text = `GET /events?after=${after}`
    const before = newestBefore(call)
    if (before !== undefined && newest < before.last) {
      return [`${text} ended at event ${newest}, after event ${before.last} (${nameOf(before)}) was acknowledged`]
    }
    const next = later.find((effect) => effect.call > end)
    if (next !== undefined && newest >= oldestAfter.get(next)!) {
      return [`${text} showed event ${oldestAfter.get(next)} before its request was sent`]
    }
    const expected = Array.from({ length: Math.max(0, Math.min(limit, newest - after)) }, (_, i) => after + 1 + i)
    if (String(found.map(({ id }) => id)) !== String(expected)) {
      return [`${text} has the events ${found.map(({ id }) => id).join()} of ${newest}`]
    }
    const changed = found.find(({ id, text }) => textOf(events[id - 1]) !== text)
    return changed === undefined ? [] : [`${text} has another event ${changed.id} than a later read: ${changed.text}`]
  })
}

/** Returns a text of all members of an event that a model predicts. */
export function textOf (event: Event | undefined): string {
  return event === undefined ? '' : canonical([event.id, event.object, event.type, event.data])
}

function nameOf ({ operation: { object, request } }: Effect): string {
  return `${request.kind}, ${object}`
}
