import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'petstore-lab/client'

/** The agent did not end as it should. */
export class AgentFailed extends Error {}

/** How often to look whether the journal has a request, and for how long, in ms. */
const POLL_MS = 20
const LIMIT_MS = 30_000

/**
 * Gives an agent a task, in an account of its own, and judges what it did.
 *
 * @param url the address of a service that has the lab
 * @param runAgent is called with `{ mcpUrl, apiKey, words }`, and returns the agent's answer as a text
 * @param settleMs time to wait before the journal is read: 1000 if the service has several processes
 * @returns the task's name, the words, the answer, and the findings: none if the agent did well
 */
export async function examine (task, { url, runAgent, settleMs = 0 }) {
  const { apiKey } = await createClient({ url }).createAccount({ name: task.name, expiresIn: 86_400 })
  const store = createClient({ url, apiKey })
  const facts = await task.setUp(store)
  // With a key of its own, its requests, faults and limits are not those of the set-up.
  const agent = await store.createApiKey({ label: 'Agent' })
  const { id: snapshotId } = await store.createSnapshot({})
  const fault = await task.spring?.(store, agent.id, facts)
  await store.putJournal({ keep: 10_000 })

  const words = task.words(facts)
  const { answer, failures } = await answerOf(runAgent, { mcpUrl: `${url}/mcp`, apiKey: agent.apiKey, words })
  await store.deleteLimits().catch(ignoreMissing)
  await sleep(settleMs)
  const requests = await readRequests(store, agent.id, fault)
  const diff = await store.getSnapshotDiff(snapshotId)
  return { task: task.name, words, answer, findings: [...failures, ...task.judge({ facts, answer, requests, diff })] }
}

async function answerOf (runAgent, assignment) {
  try {
    return { answer: await runAgent(assignment), failures: [] }
  } catch (error) {
    if (!(error instanceof AgentFailed)) throw error
    return { answer: '', failures: [{ text: error.message }] }
  }
}

function ignoreMissing (error) {
  if (error.code !== 'limits_not_found') throw error
}

/** Returns what the agent sent, in the order in which the responses ended, with all requests that the fault has hit. */
async function readRequests (store, keyId, fault) {
  const hits = fault === undefined ? 0 : (await store.getFault(fault.id)).hits
  const deadline = Date.now() + LIMIT_MS
  for (;;) {
    const requests = []
    for await (const request of store.listRequests({ keyId, limit: 100 })) requests.push(request)
    if (requests.filter(({ faultId }) => faultId !== undefined).length >= hits) return requests
    if (Date.now() > deadline) throw new Error('The journal does not get the requests that the fault has hit')
    await sleep(POLL_MS)
  }
}
