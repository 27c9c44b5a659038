import fc from 'fast-check'
import type { NewFault } from '../../src/lab/schemas.ts'
import { openTarget, type FuzzResponse, type Target } from './target.ts'
import { requestArbitrary, type FuzzRequest } from './requests.ts'

/** Limits the requests of one sequence; the average is half. Each sequence begins with a new account. */
const MAX_SEQUENCE_LENGTH = 100

/** Limits the search for a smaller sequence after a failure. */
const MAX_SHRINK_MS = 20_000

export interface FuzzReport {
  requests: number
  valid: number
  accepted: number
  refused: number
  /** Requests by operation, valid and invalid. */
  operations: Map<string, number>
  /** The first failure, with the seed that repeats it. */
  failure: string | undefined
}

export interface FuzzOptions {
  /** Migrated databases. Each gets the same requests and must give the same answers. */
  urls: string[]
  requests: number
  /** The seed and path that an earlier failure printed. */
  repeat?: string | undefined
}

/**
 * Sends valid and invalid requests for every operation of the service's document. The service must answer none with
 * 5xx, answer as documented, refuse the invalid ones, accept the valid ones, and answer alike on every database.
 */
export async function runFuzz ({ urls, requests, repeat }: FuzzOptions): Promise<FuzzReport> {
  const targets: Target[] = []
  const counts: FuzzReport = {
    requests: 0, valid: 0, accepted: 0, refused: 0, operations: new Map(), failure: undefined
  }
  try {
    for (const url of urls) targets.push(await openTarget(url))
    const [seed, path] = repeat?.split(' ') ?? []
    const requestOfDocument = requestArbitrary(targets[0]!.document)
    const sequence = fc.array(requestOfDocument, { minLength: 1, maxLength: MAX_SEQUENCE_LENGTH, size: 'max' })
    let failed: number | undefined
    const result = await fc.check(fc.asyncProperty(sequence, async (sequence) => {
      // fast-check cannot stop early. Sequences beyond the limits pass without a request.
      if (failed === undefined ? counts.requests >= requests : Date.now() - failed > MAX_SHRINK_MS) return
      try {
        await sendSequence(targets, sequence, counts)
      } catch (error) {
        failed ??= Date.now()
        throw error
      }
    }), {
      numRuns: requests,
      ...seed === undefined ? {} : { seed: Number(seed), ...path === undefined ? {} : { path } }
    })
    if (result.failed) {
      const [found = []] = result.counterexample ?? []
      counts.failure = [
        String(result.errorInstance instanceof Error ? result.errorInstance.message : result.errorInstance),
        `Repeat it with FUZZ_SEED="${result.seed} ${result.counterexamplePath}"`,
        ...found.slice(-5).map((request) => JSON.stringify(request).slice(0, 500))
      ].join('\n')
    }
    return counts
  } finally {
    for (const target of targets) await target.close()
  }
}

async function sendSequence (targets: Target[], sequence: FuzzRequest[], counts: FuzzReport): Promise<void> {
  await Promise.all(targets.map(async (target) => { await target.openAccount() }))
  for (const [i, request] of sequence.entries()) {
    const responses = await Promise.all(targets.map(async (target) =>
      await target.sendRequest(request, `request-${i}`)))
    counts.requests++
    counts.operations.set(request.operation, (counts.operations.get(request.operation) ?? 0) + 1)
    for (const each of responses) checkResponse(request, each, counts)
    const [first, ...others] = responses.map(({ normalized }) => normalized)
    for (const other of others) {
      if (other !== first) throw new Error(`${describeRequest(request)}: the databases differ:\n${first}\n${other}`)
    }
    if (await hasLostAccess(request, responses, targets)) {
      await Promise.all(targets.map(async (target) => { await target.openAccount() }))
    }
  }
}

function checkResponse (request: FuzzRequest, response: FuzzResponse, counts: FuzzReport): void {
  const { answer, problem, recordExists } = response
  const { status, text } = answer
  const { expectedStatuses, headers, method, path, operation } = request
  if (status >= 500) throw new Error(`${describeRequest(request)} is answered ${status} ${text}`)
  if (problem !== undefined) throw new Error(`${describeRequest(request)} is not answered as documented: ${problem}`)
  if (expectedStatuses.length > 0) {
    counts.refused++
    if (!expectedStatuses.includes(status)) {
      throw new Error(`${describeRequest(request)} is answered ${status} ${text}, not ${expectedStatuses.join(' or ')}`)
    }
    return
  }
  counts.valid++
  if (status < 300) counts.accepted++
  const conditional = headers['if-match'] !== undefined || headers['if-none-match'] !== undefined
  const keyed = headers['idempotency-key'] !== undefined
  const allowed = status < 300 ||
    (status === 304 && conditional && (method === 'GET' || method === 'HEAD')) ||
    // A pet that was never counted has no inventory item, a journal can be off, an account without limits, and a
    // webhook without attempts.
    (status === 404 && (!recordExists || /^\/inventory\/|\/attempts\/|^\/lab\/(journal|limits)$/.test(path))) ||
    (status === 409 && method !== 'GET') ||
    (status === 412 && conditional) ||
    (status === 422 && keyed) ||
    // A clock that was moved reaches the sunset and the end of the retention.
    (status === 410 && ['getPet', 'listEvents'].includes(operation)) ||
    (status === 400 && dependsOnState(request))
  if (!allowed) throw new Error(`${describeRequest(request)} is valid, and is answered ${status} ${text}`)
}

/** Tells whether a body is invalid in some states, or by a rule that the document only tells in words. */
function dependsOnState ({ operation, body }: FuzzRequest): boolean {
  if (operation === 'advanceClock' || operation === 'verifyRequests') return true
  // Which members go together, and whether they are in order.
  if (operation === 'resendEvents') return true
  if (operation === 'createScenario') return (body as { faults: NewFault[] }).faults.some(isContradictory)
  return operation === 'createFault' && isContradictory(body as NewFault)
}

function isContradictory (fault: NewFault): boolean {
  return ('keyId' in fault && fault.operation === 'webhook') || ('times' in fault && 'forSeconds' in fault) ||
    ('seed' in fault && !('rate' in fault))
}

/** Detects that the account is deleted or its key revoked, so that the sequence needs a new account. */
async function hasLostAccess (
  { operation }: FuzzRequest, responses: FuzzResponse[], targets: Target[]
): Promise<boolean> {
  if (!responses.every(({ answer }) => answer.status === 204)) return false
  if (operation === 'deleteAccount') return true
  if (operation !== 'revokeApiKey') return false
  const getAccount = {
    operation: 'getAccount',
    method: 'GET',
    path: '/account',
    params: {},
    query: [],
    headers: {},
    expectedStatuses: [],
    fault: ''
  }
  const answers = await Promise.all(targets.map(async (target) => await target.sendRequest(getAccount, 'get-account')))
  const statuses = answers.map(({ answer }) => answer.status)
  if (new Set(statuses).size !== 1) {
    throw new Error(`after revokeApiKey the databases answer ${statuses.join(' and ')}`)
  }
  return statuses[0] === 401
}

function describeRequest ({ operation, fault }: FuzzRequest): string {
  return fault === '' ? operation : `${operation} (${fault.slice(0, 200)})`
}
