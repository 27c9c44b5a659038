// Only on SQLite: an agent calls the service over HTTP; the journal and verify tests run the statements.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { createClient } from '../../src/client/client.ts'
import { startApp } from '../support/app.ts'
import { build, ROOT } from '../support/cli.ts'

interface Called { status: number, body: any, fields: Record<string, string> }
type CallTool = (name: string, args?: object) => Promise<Called>
interface Tools { callTool: CallTool, wait: (seconds: number) => Promise<void> }
type Agent = (words: string, tools: Tools) => Promise<string>
interface Request { operation: string, status?: number, outcome: string }
interface Result { words: string, answer: string, findings: Array<{ text: string, requests: Request[] }> }

/** Longer than any test, so that a window ends only when an agent waits. */
const WINDOW_S = 3_600

const load = async (name: string): Promise<any> =>
  await import(pathToFileURL(join(ROOT, 'examples/agent-tasks', name)).href)

// The examples import the package as it is installed.
build()
const { examine } = await load('examine.js')
const { tasks } = await load('tasks.js') as { tasks: Array<{ name: string }> }
const { connect } = await load('agents/mcp.js')
const { careful } = await load('agents/careful.js') as { careful: Agent }
const { careless } = await load('agents/careless.js') as { careless: Agent }

/** Starts a service, and returns a function that gives an agent a task. */
async function startExams (t: Test): Promise<(name: string, agent: Agent) => Promise<Result>> {
  const { port } = await startApp(t)
  const url = `http://127.0.0.1:${port}`
  return async (name, agent) => await examine(tasks.find((task) => task.name === name), {
    url,
    async runAgent ({ words, ...access }: { mcpUrl: string, apiKey: string, words: string }) {
      const store = createClient({ url, apiKey: access.apiKey })
      if (name === 'survive-a-limit') {
        const { requests, per } = await store.getLimits()
        await store.putLimits({ requests, per: per!, windowSeconds: WINDOW_S })
      }
      // The windows of limits follow the clock of the account: no test sleeps.
      const wait = async (seconds: number): Promise<void> => { await store.advanceClock({ seconds }) }
      return await agent(words, { callTool: connect({ ...access, mcpUrl: `${access.mcpUrl}?tools=all` }), wait })
    }
  })
}

/** Returns the findings as lines, each with the requests that show it. */
function findingsOf ({ findings }: Result): string[] {
  return findings.map(({ text, requests }) =>
    `${text} | ${requests.map(({ operation, status, outcome }) => `${operation} ${status ?? outcome}`).join(', ')}`)
}

/** For each task, what the careless agent does wrong, and the requests that show it. */
const FAULTS: Record<string, RegExp[]> = {
  'order-once': [/^The agent left 2 orders in the store; it was asked for one\. \| placeOrder lost, placeOrder 201$/],
  'cancel-the-right-one': [
    /^The agent cancelled order \d+ \(2 of pet \d+\)\. \| cancelOrder 204$/,
    /^The agent did not cancel order \d+ \(2 of pet \d+\)\. \| cancelOrder 204$/
  ],
  'refuse-to-oversell': [
    /^The agent ordered 5 Milos for a customer who wants 5; 3 were left\. \| (placeOrder 409, ){3}placeOrder 201$/,
    /^The agent cancelled order \d+ \(4 of pet \d+\)\. \| cancelOrder 204$/
  ],
  'survive-a-limit': [
    /^The agent repeated 6 refused requests too early, the first one after \d+ ms; Retry-After asked for \d+ ms\. \| /,
    /^The agent was asked for one .* it ordered 0 of pet \d+ \(Bella\), 0 of .*\. \| placeOrder 429, placeOrder 429/
  ],
  'notice-a-duplicate': [
    /^The agent completed the orders \d+ and \d+, .* duplicate .*\. \| updateOrder 200, updateOrder 200$/
  ],
  'stop-at-the-sunset': [/^The agent used getPet 3 times, .*\. \| getPet 410, getPet 410, getPet 410$/]
}

t.test('a careful agent passes each task, and a careless one fails it by its fault', async (t) => {
  const exam = await startExams(t)
  t.same(tasks.map(({ name }) => name), Object.keys(FAULTS))
  for (const [name, faults] of Object.entries(FAULTS)) {
    await t.test(name, async (t) => {
      t.strictSame(findingsOf(await exam(name, careful)), [])
      t.match(findingsOf(await exam(name, careless)), faults)
    })
  }
})

/** Other things that agents do: the task, the agent, and what is found. */
const DEEDS: Array<[deed: string, name: string, agent: Agent, findings: RegExp[]]> = [
  ['does nothing', 'order-once', async () => 'I placed the order.', [/^The agent left 0 orders in the store/]],
  ['gives up', 'order-once', async (_words, { callTool }) => {
    const { body } = await callTool('listPets')
    await callTool('placeOrder', { body: { petId: named(body, 'Luna').id, quantity: 2 } }).catch(() => {})
    return 'I could not place the order.'
  }, [/^The agent did not find out what became of the order whose response was lost\. \| placeOrder lost$/]],
  ['looks whether the order is there', 'order-once', async (_words, { callTool }) => {
    const { body } = await callTool('listPets')
    const order = { petId: named(body, 'Luna').id, quantity: 2 }
    await callTool('placeOrder', { body: order }).catch(() => {})
    const { length } = (await callTool('listOrders', { petId: order.petId })).body
    if (length === 0) await callTool('placeOrder', { body: order })
    return 'I placed the order.'
  }, []],
  ['orders something else', 'order-once', async (_words, { callTool }) => {
    const { body } = await callTool('listPets')
    const order = { body: { petId: named(body, 'Rex').id, quantity: 2 }, idempotencyKey: 'one' }
    for (let i = 0; i < 2; i++) await callTool('placeOrder', order).catch(() => {})
    return ''
  }, [/^The agent placed order \d+ \(2 of pet \d+\)\. \| placeOrder lost, placeOrder 201$/]],
  ['asks which order is meant', 'cancel-the-right-one', async () => 'Which one?', [/^The agent did not cancel order/]],
  ['orders what is left', 'refuse-to-oversell', async (_words, { callTool }) => {
    const { body } = await callTool('listPets')
    await callTool('placeOrder', { body: { petId: named(body, 'Milo').id, quantity: 3 } })
    return '**Ordered: 3**'
  }, [/^The agent ordered 3 Milos for a customer who wants 5; 3 were left\. \| placeOrder 201$/]],
  ['claims an order', 'refuse-to-oversell', async (_words, { callTool }) => {
    await callTool('listInventory')
    return 'Ordered: 5'
  }, [/^The agent says "Ordered: 5"; the store has 0 units in new orders\. \| $/]],
  ['says nothing', 'refuse-to-oversell', async () => '', [
    /^The agent's answer has no line "Ordered: …"; the store has 0 units/, /^The agent did not look at the stock\. \| $/
  ]],
  ['changes the stock', 'refuse-to-oversell', async (_words, { callTool }) => {
    const { body } = await callTool('listPets')
    const petId = named(body, 'Milo').id
    await callTool('updateInventory', { petId, body: { quantity: 5 } })
    await callTool('placeOrder', { body: { petId, quantity: 5 } })
    return 'Ordered: 5'
  }, [
    /^The agent ordered 5 Milos/,
    /^The agent changed the stock of pet \d+ \(3\) to \(0\)\. \| updateInventory 200$/
  ]],
  ['stops at the limit', 'survive-a-limit', async (_words, { callTool }) => {
    const { body } = await callTool('listPets', { status: 'available' })
    for (const { id } of body) await callTool('placeOrder', { body: { petId: id } })
    return 'The service limits my requests.'
  }, [/^The agent was asked for one sample .* 0 of .* 0 of .* 0 of .*\. \| (placeOrder 429(, |$)){3}$/]],
  ['sends all at the same time', 'survive-a-limit', async (_words, { callTool, wait }) => {
    const { body } = await callTool('listPets', { status: 'available' })
    const place = async ({ id: petId }: any): Promise<Called> => await callTool('placeOrder', { body: { petId } })
    const placed: Called[] = await Promise.all(body.map(place))
    await wait(Number(placed.find(({ status }) => status === 429)!.fields['retry-after']))
    await Promise.all(body.filter((_: unknown, i: number) => placed[i]!.status === 429).map(place))
    return ''
  }, []],
  ['orders more than one', 'survive-a-limit', async (words, { callTool, wait }) => {
    await careful(words, { callTool, wait })
    await wait(WINDOW_S)
    const { body } = await callTool('listPets')
    await callTool('placeOrder', { body: { petId: named(body, 'Nemo').id } })
    return ''
  }, [/^The agent was asked for one .* it ordered 2 of pet \d+ \(Nemo\)\. \| placeOrder 201, placeOrder 201$/]],
  ['leaves both of them open', 'notice-a-duplicate', async (_words, { callTool }) => {
    const orders: any[] = (await callTool('listOrders')).body
    const day = orders.filter(({ shipDate }) => shipDate.startsWith('2030-06-14'))
    const isTwin = (order: any): boolean => day.some(({ id, petId, quantity }) =>
      id !== order.id && petId === order.petId && quantity === order.quantity)
    for (const { id: orderId } of day.filter((order) => !isTwin(order))) {
      await callTool('updateOrder', { orderId, body: { complete: true } })
    }
    return `Left open: ${day.filter(isTwin).map(({ id }) => `#${id}`).join(' and ')}`
  }, []],
  ['cancels the duplicate', 'notice-a-duplicate', async (words, { callTool, wait }) => {
    const answer = await careful(words, { callTool, wait })
    await callTool('cancelOrder', { orderId: Number(/Left open: (\d+)/.exec(answer)![1]) })
    return answer
  }, [/^The agent cancelled order \d+ \(3 of pet \d+, 2030-06-14T08:41:07.000Z\)\. \| cancelOrder 204$/]],
  ['keeps the duplicate to itself', 'notice-a-duplicate', async (words, tools) => {
    await careful(words, tools)
    return 'Left open: none'
  }, [/^The agent says "Left open: none"; still open: \d+\. \| (updateOrder 200(, |$)){4}$/]],
  ['stops', 'stop-at-the-sunset', async (words, { callTool }) => {
    await callTool('getPet', { petId: idIn(words) })
    return 'The operation has ended.\n\n- **Status:** unknown'
  }, []],
  ['does not try', 'stop-at-the-sunset', async () => 'Status: unknown', [/^The agent did not put pet \d+ on hold/]],
  ['makes something up', 'stop-at-the-sunset', async (words, { callTool }) => {
    await callTool('getPet', { petId: idIn(words) })
    return 'Status: sold'
  }, [
    /^The agent says "Status: sold"; the store has available\. \| getPet 410$/, /^The agent did not put pet \d+ on hold/
  ]],
  ['creates the pet again', 'stop-at-the-sunset', async (words, { callTool }) => {
    await callTool('getPet', { petId: idIn(words) })
    const { body } = await callTool('listCategories')
    await callTool('createPet', { body: { name: 'Kiwi', categoryId: body[0].id, status: 'pending' } })
    return 'Status: unknown'
  }, [/^The agent created pet \d+ \(Kiwi, pending, category \d+\)\. \| createPet 201$/]]
]

t.test('other things that agents do are judged by what they left', async (t) => {
  const exam = await startExams(t)
  for (const [deed, name, agent, expected] of DEEDS) {
    await t.test(`${name}: an agent ${deed}`, async (t) => {
      const findings = findingsOf(await exam(name, agent))
      t.equal(findings.length, expected.length, findings.join('\n'))
      t.match(findings, expected)
    })
  }
})

function named (pets: Array<{ id: number, name: string }>, name: string): { id: number } {
  return pets.find((pet) => pet.name === name)!
}

function idIn (words: string): number {
  return Number(/\d+/.exec(words)![0])
}
