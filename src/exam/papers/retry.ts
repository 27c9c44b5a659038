import type { FaultEffect, RecordedRequest } from '../../client/client.ts'
import { ClientFailed, type TaskAnswer } from '../client-process.ts'
import {
  CLIENTS_AT_ONCE, EARLY_MARGIN_MS, MAX_ATTEMPTS, RETRY_AFTER_S, TASK_LIMIT_MS
} from '../margins.ts'
import { definePaper, Undecided, type Finding } from '../paper.ts'
import { nameOf, pauseBetween, requestsAbout, requestsOf, retryAfterOf } from '../recorded-requests.ts'
import type { Candidate } from '../room.ts'
import { judgePauses } from './pauses.ts'
import { addPets } from './stock.ts'

/** Responses after which a client waits and repeats. */
const TEMPORARY = [408, 429, 502, 503, 504] as const

const refuse = (status: (typeof TEMPORARY)[number]): FaultEffect =>
  ({ type: 'refuse', status, retryAfter: RETRY_AFTER_S })

/** An id that no pet has. */
const NO_PET = Number.MAX_SAFE_INTEGER

interface Evidence {
  attempt: number
  /** The pets whose first responses ask for a pause. */
  asked: Array<{ keyId: number, petId: number }>
  /** What can never succeed. */
  hopeless: Array<{ keyId: number, petId: number }>
  /** The pets whose responses all break, of a client each. */
  broken: Array<{ keyId: number, petId: number, answer: TaskAnswer | undefined }>
}

export const retry = definePaper<Evidence>({
  name: 'retry',
  goodClient: 'repeats after 408, 429, 502, 503, 504 and broken connections alone: after the time of Retry-After, ' +
    'else after pauses that grow and are not in step with other clients, a bounded number of times',
  async sit ({ store, admit, attempt }) {
    const clients = await Promise.all(Array.from({ length: CLIENTS_AT_ONCE }, admit))
    const [patient, ...others] = clients as [Candidate, ...Candidate[]]
    const pets = (await addPets(store, 2 + 2 * CLIENTS_AT_ONCE)).map(({ id }) => id)
    const next = (): number => pets.pop()!
    const asked: Evidence['asked'] = []
    const hopeless: Evidence['hopeless'] = []

    // A Retry-After with a date comes from a limit, which the exam itself keeps: it has a key of its own.
    const dated = { keyId: patient.keyId, petId: next() }
    await patient.ask('getPet', { petId: next() })
    await store.putLimits({ requests: 1, windowSeconds: RETRY_AFTER_S, per: 'key', fields: 'none', retryAfter: 'date' })
    await patient.ask('getPet', { petId: next() })
    await patient.ask('getPet', { petId: dated.petId })
    await store.deleteLimits()
    asked.push(dated)

    await Promise.all(others.map(async (client, i) => {
      const { keyId } = client
      const status = TEMPORARY[i]
      if (status !== undefined) {
        const petId = next()
        asked.push({ keyId, petId })
        await client.meets(refuse(status))
        await client.ask('getPet', { petId })
      } else if (i === TEMPORARY.length) {
        hopeless.push({ keyId, petId: NO_PET })
        await client.ask('getPet', { petId: NO_PET })
      } else {
        const petId = next()
        hopeless.push({ keyId, petId })
        await client.ask('placeOrder', { petId, quantity: 1_000 })
      }
    }))

    const broken = await Promise.all(clients.map(async (client) => {
      const petId = next()
      await client.meets({ type: 'reset' }, { times: MAX_ATTEMPTS })
      const answer = await client.ask('getPet', { petId }).catch((error: unknown) => {
        if (error instanceof ClientFailed && error.isLate) return undefined
        throw error
      })
      return { keyId: client.keyId, petId, answer }
    }))
    return { attempt, asked, hopeless, broken }
  },
  judge ({ attempt, asked, hopeless, broken }, journal) {
    const attemptsOf = ({ keyId, petId }: { keyId: number, petId: number }): RecordedRequest[] =>
      requestsAbout(requestsOf(journal, { keyId }), petId)
    const findings = [
      ...asked.flatMap((task) => judgeAsked(attemptsOf(task))),
      ...hopeless.flatMap((task) => judgeHopeless(attemptsOf(task)))
    ]
    const tasks = broken.map((task) => ({ answer: task.answer, attempts: attemptsOf(task) }))
    // A client that has failed already needs no second attempt.
    return [...findings, ...judgeBroken(tasks, findings.length > 0 ? Infinity : attempt)]
  }
})

/** Judges attempts of which all but the last were asked to wait. */
function judgeAsked (attempts: RecordedRequest[]): Finding[] {
  const refused = attempts.find(({ status }) => TEMPORARY.some((temporary) => temporary === status))
  if (attempts.length === 0) return [{ text: 'The client did not ask for a pet.' }]
  // The window of a limit was over too early.
  if (refused === undefined) throw new Undecided()
  const next = attempts[attempts.indexOf(refused) + 1]
  if (next === undefined) {
    const text = `The client did not repeat ${nameOf(refused)}, which was answered ${refused.status}.`
    return [{ text, requests: attempts }]
  }
  const asked = retryAfterOf(refused)
  const pause = pauseBetween(refused, next)
  if (asked === undefined || pause >= asked - EARLY_MARGIN_MS) return []
  const text = `The client repeated ${nameOf(refused)} after ${pause} ms; Retry-After asked for ${asked} ms.`
  return [{ text, requests: attempts }]
}

function judgeHopeless (attempts: RecordedRequest[]): Finding[] {
  const [first] = attempts
  if (first === undefined || attempts.length === 1) return []
  const text = `The client repeated ${nameOf(first)}, which was answered ${first.status}: that cannot help.`
  return [{ text, requests: attempts }]
}

function judgeBroken (
  tasks: Array<{ answer: TaskAnswer | undefined, attempts: RecordedRequest[] }>, held: number
): Finding[] {
  if (tasks.some(({ attempts }) => attempts.length === 0)) return [{ text: 'The client did not ask for a pet.' }]
  const single = tasks.find(({ attempts }) => attempts.length === 1)
  if (single !== undefined) {
    const { attempts } = single
    const text = `The client did not repeat ${nameOf(attempts[0]!)}, whose connection broke.`
    return [{ text, requests: attempts }]
  }
  const endless = tasks.find(({ answer, attempts }) => answer === undefined || attempts.length > MAX_ATTEMPTS)
  if (endless !== undefined) {
    const { answer, attempts } = endless
    const until = answer === undefined ? ` within ${TASK_LIMIT_MS / 1_000} s` : ''
    const text = `The client did not stop${until}: it sent a request ${attempts.length} times.`
    return [{ text, requests: attempts }]
  }
  return judgePauses(tasks.map(({ attempts }) => attempts), held)
}
