import { canonical, READS, type Answer, type Event, type Operation } from './operation.ts'
import type { Model } from './search.ts'
import type { Apply, Outcome } from './store-model.ts'

/** An object of the store, the answers that its Idempotency-Keys remember, and its part of the feed. */
export interface ObjectState<State> {
  inner: State
  /** The first success of each key that is used more than once. */
  answers: ReadonlyMap<string, Remembered>
  /** The events that the operations have written so far. */
  events: number
}

interface Remembered {
  /** The request, whose repetition is a replay. */
  request: string
  answer: Answer
  /** Both, as a part of the key of a state. */
  text: string
}

/**
 * Returns the model of an object that checks answers, replays and, if there is one, the feed: an operation happens only
 * where its events are the next ones of the object, so that the feed is a witness of the order.
 */
export function createObjectModel<State extends object> (
  apply: Apply<State>, initial: State, history: readonly Operation[], feed?: readonly Event[]
): Model<ObjectState<State>, Operation> {
  const repeatedKeys = repeatedKeysOf(history)
  const expectedEvents = feed?.map(({ type, data }) => canonical({ type, data }))

  function step (state: ObjectState<State>, operation: Operation): ObjectState<State> | undefined {
    const key = operation.key !== undefined && repeatedKeys.has(operation.key) ? operation.key : undefined
    const first = key === undefined ? undefined : state.answers.get(key)
    if (first !== undefined) return answersAgain(first, operation) ? state : undefined
    const { answer } = operation
    if (answer?.replayed === true || answer?.code === 'idempotency_key_reused') return undefined
    const outcome = apply(state.inner, operation)
    if (answer !== undefined && !isSame(answer, outcome.answer)) return undefined
    if (!isNextInFeed(state, outcome)) return undefined
    const remembers = key !== undefined && outcome.answer.status < 300
    if (outcome.state === state.inner && !remembers) return state
    return {
      inner: outcome.state,
      answers: remembers ? new Map([...state.answers, [key, remember(operation, outcome.answer)]]) : state.answers,
      events: state.events + outcome.events.length
    }
  }

  function isNextInFeed ({ events: position }: ObjectState<State>, { events }: Outcome<State>): boolean {
    return expectedEvents === undefined ||
      events.every((event, i) => expectedEvents[position + i] === canonical(event))
  }

  return {
    initial: { inner: initial, answers: new Map(), events: 0 },
    step,
    // A replay and a refusal change nothing, whatever has happened before.
    isRead: ({ request, answer }) =>
      READS.has(request.kind) || answer?.replayed === true || (answer !== undefined && answer.status >= 300),
    keyOf: ({ inner, answers, events }) =>
      [events, canonical(inner), ...[...answers].map(([key, { text }]) => `${key} ${text}`).sort()].join('\n'),
    accepts: ({ events }) => expectedEvents === undefined || events === expectedEvents.length
  }
}

function remember (operation: Operation, answer: Answer): Remembered {
  const request = textOf(operation)
  return { request, answer, text: `${request} ${canonical(answer)}` }
}

/** Tells whether an operation can be answered when its key has an answer already. */
function answersAgain (first: Remembered, { answer, ...operation }: Operation): boolean {
  if (answer === undefined) return true
  if (first.request !== textOf(operation)) return answer.code === 'idempotency_key_reused'
  return answer.replayed === true && isSame(answer, first.answer)
}

/** Preconditions are header fields, so they are no part of the request that a key stands for. */
function textOf ({ request }: Pick<Operation, 'request'>): string {
  return canonical(request)
}

function isSame (a: Answer, b: Answer): boolean {
  return a.status === b.status && a.code === b.code && a.etag === b.etag && canonical(a.body) === canonical(b.body)
}

function repeatedKeysOf (history: readonly Operation[]): Set<string> {
  const seen = new Set<string>()
  const repeated = new Set<string>()
  for (const { key } of history) {
    if (key === undefined) continue
    if (seen.has(key)) repeated.add(key)
    seen.add(key)
  }
  return repeated
}
