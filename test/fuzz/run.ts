import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { openSide, type Fired, type Side } from './target.ts'
import { shots, type Shot } from './requests.ts'

/** Requests of one sequence at most, and half as many on the average; each sequence begins with a new account. */
const SEQUENCE = 100

/** How long a sequence that failed is made smaller, in ms. */
const SHRINKING_MS = 20_000

export interface Attack {
  requests: number
  valid: number
  accepted: number
  refused: number
  /** How often each operation was asked for, validly and not. */
  operations: Map<string, number>
  /** What went wrong, with the seed that repeats it. */
  failure: string | undefined
}

export interface Choice {
  /** Databases, migrated; the same requests go to each, and the answers must be the same. */
  urls: string[]
  requests: number
  /** As an earlier failure printed it. */
  repeat?: string | undefined
}

/**
 * Sends valid and invalid requests for every operation of the service's own document: no 5xx, every answer
 * as documented, the invalid ones refused, the valid ones accepted, and the same on every database.
 */
export async function attack ({ urls, requests, repeat }: Choice): Promise<Attack> {
  const sides: Side[] = []
  const counts: Attack = { requests: 0, valid: 0, accepted: 0, refused: 0, operations: new Map(), failure: undefined }
  try {
    for (const url of urls) sides.push(await openSide(url))
    const [seed, path] = repeat?.split(' ') ?? []
    const sequence = fc.array(shots(sides[0]!.document), { minLength: 1, maxLength: SEQUENCE, size: 'max' })
    let failed: number | undefined
    const result = await fc.check(fc.asyncProperty(sequence, async (sequence) => {
      // Enough was sent, or enough was tried to make a failure smaller: the rest passes unseen.
      if (failed === undefined ? counts.requests >= requests : Date.now() - failed > SHRINKING_MS) return
      try {
        await run(sides, sequence, counts)
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
        `Repeat it with HOSTILE_SEED="${result.seed} ${result.counterexamplePath}"`,
        ...found.slice(-5).map((shot) => JSON.stringify(shot).slice(0, 500))
      ].join('\n')
    }
    return counts
  } finally {
    for (const side of sides) await side.close()
  }
}

async function run (sides: Side[], sequence: Shot[], counts: Attack): Promise<void> {
  await Promise.all(sides.map(async (side) => { await side.begin() }))
  for (const [i, shot] of sequence.entries()) {
    const fired = await Promise.all(sides.map(async (side) => await side.fire(shot, `shot-${i}`)))
    counts.requests++
    counts.operations.set(shot.operation, (counts.operations.get(shot.operation) ?? 0) + 1)
    for (const each of fired) judge(shot, each, counts)
    const [first, ...others] = fired.map(({ plain }) => plain)
    for (const other of others) if (other !== first) throw new Error(`${named(shot)}: the databases differ:\n${first}\n${other}`)
    if (await lostAccess(shot, fired, sides)) await Promise.all(sides.map(async (side) => { await side.begin() }))
  }
}

function judge (shot: Shot, { answer, problem, there }: Fired, counts: Attack): void {
  const { status, text } = answer
  const { refusedWith, headers, method, path } = shot
  if (status >= 500) throw new Error(`${named(shot)} is answered ${status} ${text}`)
  if (problem !== undefined) throw new Error(`${named(shot)} is not answered as documented: ${problem}`)
  if (refusedWith.length > 0) {
    counts.refused++
    if (!refusedWith.includes(status)) throw new Error(`${named(shot)} is answered ${status} ${text}, and not refused with ${refusedWith.join(' or ')}`)
    return
  }
  counts.valid++
  if (status < 300) counts.accepted++
  const conditional = headers['if-match'] !== undefined || headers['if-none-match'] !== undefined
  const keyed = headers['idempotency-key'] !== undefined
  const fine = status < 300 ||
    (status === 304 && conditional && (method === 'GET' || method === 'HEAD')) ||
    // Never counted is another kind of not there.
    (status === 404 && (!there || path.startsWith('/inventory/'))) ||
    (status === 409 && method !== 'GET') ||
    (status === 412 && conditional) ||
    (status === 422 && keyed)
  if (!fine) throw new Error(`${named(shot)} is valid, and is answered ${status} ${text}`)
}

/** Whoever erased the account, or revoked its own key, begins anew. */
async function lostAccess ({ operation }: Shot, fired: Fired[], sides: Side[]): Promise<boolean> {
  if (!fired.every(({ answer }) => answer.status === 204)) return false
  if (operation === 'deleteAccount') return true
  if (operation !== 'revokeApiKey') return false
  const asked = { operation: 'getAccount', method: 'GET', path: '/account', params: {}, query: [], headers: {}, refusedWith: [], fault: '' }
  const statuses = await Promise.all(sides.map(async (side) => (await side.fire(asked, 'look')).answer.status))
  if (!isDeepStrictEqual(new Set(statuses).size, 1)) throw new Error(`after revokeApiKey the databases answer ${statuses.join(' and ')}`)
  return statuses[0] === 401
}

function named ({ operation, fault }: Shot): string {
  return fault === '' ? operation : `${operation} (${fault.slice(0, 200)})`
}
