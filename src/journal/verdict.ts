import type { Outcome, RequestCheck, RequestVerdict } from './schemas.ts'

/** What checks compare of a recorded request. */
export interface RequestFacts {
  id: number
  operation: string
  method: string
  path: string
  keyId: number
  outcome: Outcome
  /** In real time, in ms since 1970. */
  startedMs: number
  status?: number | undefined
  run?: string | undefined
  idempotencyKey?: string | undefined
  /** What `Retry-After` of its response asked for. */
  retryAfterMs?: number | undefined
  attemptOf?: number | undefined
  pauseMs?: number | undefined
  /** What `Retry-After` of the attempt before it asked for. */
  askedMs?: number | undefined
}

type Match = RequestCheck['match']
type Difference = RequestVerdict['differences'][number]

export function matchesRequest (facts: RequestFacts, match: Match): boolean {
  const { path, ...others } = match
  const ownPath = path?.includes('?') === true ? facts.path : facts.path.split('?')[0]
  return (path === undefined || path === ownPath) &&
    Object.entries(others).every(([name, value]) => facts[name as keyof RequestFacts] === value)
}

/** Returns the mistake in a check that no requests could pass, or that says two things at once. */
export function problemOfCheck ({ times, minPauseMs, maxPauseMs }: RequestCheck): string | undefined {
  const { exactly, atLeast, atMost } = times
  if (exactly !== undefined && (atLeast !== undefined || atMost !== undefined)) {
    return 'times must have either exactly, or atLeast and atMost'
  }
  if (atLeast !== undefined && atMost !== undefined && atLeast > atMost) {
    return 'times.atLeast must not be more than times.atMost'
  }
  if (minPauseMs !== undefined && maxPauseMs !== undefined && minPauseMs > maxPauseMs) {
    return 'minPauseMs must not be more than maxPauseMs'
  }
  return undefined
}

/** @param matching the matching requests, in order of arrival */
export function judgeRequests (check: RequestCheck, matching: RequestFacts[]): RequestVerdict {
  const differences = [
    ...judgeTimes(check, matching.length),
    ...judgeKeys(check, matching),
    ...judgePauses(check, matching),
    ...judgeOrder(check, matching)
  ]
  const ids = matching.map(({ id }) => id)
  return { passed: differences.length === 0, actual: matching.length, requests: ids, differences }
}

function judgeTimes ({ times: { exactly, atLeast, atMost } }: RequestCheck, actual: number): Difference[] {
  const found = `${actual === 1 ? '1 request matches' : `${actual} requests match`}`
  if (exactly !== undefined && actual !== exactly) return [{ text: `${found}; exactly ${exactly} must match.` }]
  if (atLeast !== undefined && actual < atLeast) return [{ text: `${found}; at least ${atLeast} must match.` }]
  if (atMost !== undefined && actual > atMost) return [{ text: `${found}; at most ${atMost} may match.` }]
  return []
}

function judgeKeys ({ sameIdempotencyKey }: RequestCheck, matching: RequestFacts[]): Difference[] {
  if (sameIdempotencyKey === undefined) return []
  const seen = new Map<string, number>()
  const [first] = matching
  return matching.flatMap(({ id, idempotencyKey: key }, i) => {
    if (key === undefined) return [{ id, text: `The ${ordinal(i)} request has no Idempotency-Key.` }]
    const earlier = seen.get(key)
    seen.set(key, earlier ?? id)
    if (!sameIdempotencyKey) {
      return earlier === undefined ? [] : [{ id, text: `The ${ordinal(i)} request has the Idempotency-Key of request ${earlier}.` }]
    }
    if (key === first!.idempotencyKey || first!.idempotencyKey === undefined) return []
    return [{ id, text: `The ${ordinal(i)} request has another Idempotency-Key than the first.` }]
  })
}

function judgePauses ({ minPauseMs, maxPauseMs }: RequestCheck, matching: RequestFacts[]): Difference[] {
  if (minPauseMs === undefined && maxPauseMs === undefined) return []
  /** The number of attempts of each request so far. */
  const attempts = new Map<number, number>()
  return matching.flatMap(({ id, attemptOf = id, pauseMs, askedMs }) => {
    const number = (attempts.get(attemptOf) ?? (attemptOf === id ? 0 : 1)) + 1
    attempts.set(attemptOf, number)
    if (pauseMs === undefined) return []
    const came = `The ${ordinal(number - 1)} attempt came after ${pauseMs} ms`
    const asked = askedMs === undefined ? '' : `; Retry-After asked for ${askedMs} ms`
    if (minPauseMs !== undefined && pauseMs < minPauseMs) return [{ id, text: `${came}, less than ${minPauseMs} ms${asked}.` }]
    if (maxPauseMs !== undefined && pauseMs > maxPauseMs) return [{ id, text: `${came}, more than ${maxPauseMs} ms${asked}.` }]
    return []
  })
}

function judgeOrder ({ inOrder = [] }: RequestCheck, matching: RequestFacts[]): Difference[] {
  let next = 0
  for (const facts of matching) {
    if (next < inOrder.length && matchesRequest(facts, inOrder[next]!)) next++
  }
  if (next === inOrder.length) return []
  const wanted = JSON.stringify(inOrder[next])
  const where = next === 0 ? '' : ` after the ${ordinal(next - 1)} of inOrder`
  return [{ text: `No request matches ${wanted}${where}.` }]
}

const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']

/** Returns the ordinal number of an index. */
function ordinal (index: number): string {
  const number = index + 1
  if (number <= ORDINALS.length) return ORDINALS[index]!
  const suffix = number % 100 >= 11 && number % 100 <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][number % 10] ?? 'th'
  return `${number}${suffix}`
}
