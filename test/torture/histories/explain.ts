import type { ObjectState } from './object-model.ts'
import type { Event, Operation } from './operation.ts'
import type { Window } from './search.ts'

/** The operations that are shown of those before a violation. */
const SHOWN_BEFORE = 4

/** The operations of unknown outcome that are shown of those before a violation: the newest ones. */
const SHOWN_UNKNOWN = 3

/** A body is cut after this many characters. */
const MAX_BODY_LENGTH = 200

type ObjectWindow = Window<ObjectState<object>, Operation>

/** Describes an answer that no order explains: the operation, those at the same time, and the last ones before it. */
export function explainViolation (object: string, window: ObjectWindow): string {
  return [`${object}: no order of the requests explains an answer`, ...describe(window)].join('\n')
}

/** Describes an answer, or an event, that the feed contradicts although the answers agree with each other. */
export function explainFeedViolation (
  object: string, events: readonly Event[], window: ObjectWindow | { state: ObjectState<object> }
): string {
  const position = window.state.events
  const next = events.slice(position, position + 2).map(({ id, type, data }) =>
    `    event ${id}: ${type} ${JSON.stringify(data)}`)
  return [
    `${object}: its answers and its events in the feed have no common order`,
    ...'culprit' in window ? describe(window) : [`    the state was ${JSON.stringify(window.state.inner)}`],
    next.length > 0 ? '  The feed continues with' : `  The feed has no more than its ${events.length} events`,
    ...next
  ].join('\n')
}

function describe ({ culprit, concurrent, before, state }: ObjectWindow): string[] {
  const unknown = concurrent.filter(({ answer }) => answer === undefined).sort((a, b) => a.call - b.call)
  const older = unknown.slice(0, -SHOWN_UNKNOWN)
  const shown = concurrent.filter((operation) => !older.includes(operation)).sort((a, b) => a.call - b.call)
  const start = Math.min(culprit.call, ...shown.map(({ call }) => call))
  return [
    ...before.slice(-SHOWN_BEFORE).map((operation) => `    ${textOf(operation, start)}`),
    `    the state was ${JSON.stringify(state.inner)}`,
    ...older.length > 0 ? [`  | ${older.length} older requests of unknown outcome`] : [],
    ...shown.map((operation) => `  | ${textOf(operation, start)}`),
    `  ✖ ${textOf(culprit, start)}`
  ]
}

/** Formats an operation in one line, with times in ms from the start of the window. */
function textOf ({ call, return: end, client, request, ifMatch, key, answer }: Operation, start: number): string {
  const { kind, ...members } = request
  const time = (at: number): string => at === Infinity ? '…' : (at - start).toFixed(1)
  const fields = [
    ...Object.keys(members).length > 0 ? [JSON.stringify(members)] : [],
    ...ifMatch === undefined ? [] : [`If-Match: ${ifMatch}`],
    ...key === undefined ? [] : [`Idempotency-Key: ${key}`]
  ]
  const { status, code, body, etag, replayed } = answer ?? {}
  const said = answer === undefined || end === Infinity
    ? 'no answer yet'
    : [status, code, etag, cut(JSON.stringify(body) ?? ''), replayed === true ? '(replay)' : '']
        .filter((part) => part !== undefined && part !== '').join(' ')
  return `${time(call)} – ${time(end)} ms, client ${client}: ${[kind, ...fields].join(' ')} → ${said}`
}

function cut (text: string): string {
  return text.length > MAX_BODY_LENGTH ? `${text.slice(0, MAX_BODY_LENGTH)}…` : text
}
