import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type Client, type FaultEffect, type NewFault, type RecordedRequest } from '../client/client.ts'
import { OperationalError } from '../operational-error.ts'
import { startClient, type ClientProcess, type TaskAnswer } from './client-process.ts'
import { SERVICE_LIMIT_MS, TASK_LIMIT_MS, TIMEOUT_MS } from './margins.ts'

/** The most requests that a journal has. */
const KEEP = 10_000

/** How often the exam looks whether something has happened, in ms. */
const POLL_MS = 25

/** A process of the client under test, with an API key of its own. */
export interface Candidate {
  keyId: number
  /** Gives it a task and waits for its answer. @throws {ClientFailed | UnknownTask} */
  ask: (task: string, args?: Record<string, unknown>, limitMs?: number) => Promise<TaskAnswer>
  /** Adds a fault that hits only its requests. */
  meets: (effect: FaultEffect, fields?: Partial<NewFault>) => Promise<void>
}

/** Where a client sits for one paper: an account with a journal. */
export interface Room {
  /** A client of the account, for what the exam does and looks up itself. Its requests are in the journal, too. */
  store: Client
  /** Which attempt to hold the paper this is, from 1. */
  attempt: number
  /** Starts the client under test. */
  admit: () => Promise<Candidate>
}

export interface OpenedRoom extends Room {
  /** Ends all processes of the client. */
  dismiss: () => Promise<void>
  /** Returns what the journal has, in order of arrival. The client must have ended. */
  readJournal: () => Promise<RecordedRequest[]>
}

/** Opens an account for a paper. */
export async function openRoom (url: string, command: string, attempt: number): Promise<OpenedRoom> {
  const { apiKey } = await createClient({ url }).createAccount({ name: 'Exam', expiresIn: 3_600 })
  const store = createClient({ url, apiKey })
  await store.putJournal({ keep: KEEP })
  const processes: ClientProcess[] = []
  const faults: number[] = []

  return {
    store,
    attempt,
    async admit () {
      const { id: keyId, apiKey } = await store.createApiKey({ label: 'Client under test' })
      const client = startClient(command)
      processes.push(client)
      return {
        keyId,
        ask: async (task, args = {}, limitMs = TASK_LIMIT_MS) =>
          await client.ask({ do: task, url, apiKey, timeoutMs: TIMEOUT_MS, args }, limitMs),
        async meets (effect, fields = {}) {
          const { id } = await store.createFault({ operation: '*', keyId, ...fields, effect })
          faults.push(id)
        }
      }
    },
    async dismiss () {
      await Promise.all(processes.map(async (client) => { await client.end() }))
    },
    async readJournal () {
      const hits = (await Promise.all(faults.map(async (id) => await store.getFault(id))))
        .reduce((sum, { hits }) => sum + hits, 0)
      // The service notices only after a while that a client has gone, and then records its last request. One that the
      // client left at once can have no fault yet.
      return await waitFor('all requests of the client to be recorded', async () => {
        const requests = await recordedRequests(store)
        const isHit = ({ faultId, outcome }: RecordedRequest): boolean => faultId !== undefined || outcome === 'left'
        return requests.filter(isHit).length >= hits ? requests : undefined
      })
    }
  }
}

async function recordedRequests (store: Client): Promise<RecordedRequest[]> {
  const requests: RecordedRequest[] = []
  for await (const request of store.listRequests({ limit: 100 })) requests.push(request)
  return requests.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || a.id - b.id)
}

/** Waits until a function returns something. @throws {OperationalError} when the service hangs */
export async function waitFor<T> (what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + SERVICE_LIMIT_MS
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new OperationalError(`The exam waited too long for ${what}`)
    await sleep(POLL_MS)
  }
}
