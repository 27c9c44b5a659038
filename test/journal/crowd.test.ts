import { randomUUID } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import t from 'tap'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { newCategory } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { newFault } from '../lab/fixture.ts'
import { receive } from '../lab/receive.ts'
import { turnOn } from './fixture.ts'

const CLIENTS = 64
const ROUNDS = 8

/** One fault of every kind, each for several requests. */
const FAULTS = [
  { type: 'delay', ms: 20 }, { type: 'refuse', status: 503 }, { type: 'refuse', status: 500 }, { type: 'reset' },
  { type: 'lose_answer' }, { type: 'replace_answer', status: 502 }, { type: 'truncate', bytes: 7 },
  { type: 'trickle', bytesPerSecond: 1_000 }, { type: 'corrupt', how: 'wrong_type' }
]
const HITS = 20

/** What a client saw of a request. */
interface Seen { id: string, kind: 'whole' | 'part' | 'nothing' | 'left', status?: number, text?: string }

async function send (service: TestApp, client: Client): Promise<Seen> {
  const id = randomUUID()
  const isWrite = Math.random() < 0.5
  const answer = await receive(
    service, client, isWrite ? 'POST' : 'GET', '/categories', isWrite ? { name: `Kind ${id}` } : undefined,
    { 'request-id': id }
  )
  if (answer === undefined) return { id, kind: 'nothing' }
  return { id, kind: answer.whole ? 'whole' : 'part', status: answer.status, text: answer.text }
}

/** Sends requests whose answers are held back, and closes their connections when all have come to the service. */
async function leave ({ port }: TestApp, client: Client): Promise<Seen[]> {
  const delay = { operation: 'listInventory', effect: { type: 'delay', ms: 60_000 }, times: CLIENTS }
  const faultId = await newFault(client, delay)
  const asked = Array.from({ length: CLIENTS }, () => {
    const id = randomUUID()
    const headers = { authorization: `Bearer ${client.key}`, 'request-id': id }
    const request = httpRequest({ port, host: '127.0.0.1', path: '/inventory', agent: false, headers })
    request.on('error', () => {}).end()
    return { id, request }
  })
  await eventually(async () => (await client.get(`/lab/faults/${faultId}`)).body.hits === CLIENTS)
  for (const { request } of asked) request.destroy()
  return asked.map(({ id }) => ({ id, kind: 'left' }))
}

t.test('the journal has every request of a crowd once, with the outcome that its client saw', async (t) => {
  const service = await startApp(t)
  const ada = await service.openAccount()
  const eve = await service.openAccount()
  await newCategory(ada)
  const effects = new Map<number, string>()
  for (const effect of FAULTS) {
    effects.set(await newFault(ada, { operation: '*', effect, times: HITS, after: 5 }), effect.type)
  }
  await turnOn(ada)
  await turnOn(eve)
  const seen = (await Promise.all(Array.from({ length: CLIENTS }, async () => {
    const own: Seen[] = []
    for (let round = 0; round < ROUNDS; round++) own.push(await send(service, ada))
    await eve.get('/pets')
    return own
  }))).flat()
  await ada.delete('/lab/faults')
  seen.push(...await leave(service, ada))

  let records: any[] = []
  const requestId = ({ fields }: any): string => fields.find(({ name }: any) => name === 'request-id').value
  await eventually(async () => {
    records = []
    for (let after = 0; ;) {
      const { body } = await ada.get(`/lab/requests?limit=100&after=${after}`)
      if (body.length === 0) break
      records.push(...body)
      after = body.at(-1).id
    }
    return records.length >= seen.length
  })
  t.same(records.map(requestId).sort(), seen.map(({ id }) => id).sort(), 'every request once')
  const byId = new Map(records.map((record) => [requestId(record), record]))
  const wrong: unknown[] = []
  const kinds = new Set<string>()
  for (const { id, kind, status, text } of seen) {
    const { outcome, faultId, answer = '', ...record } = byId.get(id)
    const effect = effects.get(faultId)
    kinds.add(`${kind} ${outcome} ${effect ?? ''}`)
    const isRight = kind === 'left'
      ? outcome === 'left' && record.status === undefined
      : kind === 'nothing'
        ? record.status === undefined && outcome === (effect === 'lose_answer' ? 'lost' : 'refused')
        : record.status === status && answer === text &&
          outcome === (kind === 'part' ? 'cut' : effect === 'refuse' ? 'refused' : 'answered')
    if (!isRight) wrong.push({ kind, status, text, outcome, effect, answer, ...record })
  }
  t.same(wrong, [])
  t.ok(kinds.size >= 9, [...kinds].sort().join(', '))
  t.match((await ada.get('/lab/journal')).body, { requests: seen.length, dropped: 0 })
  const { body: hers } = await eve.get('/lab/requests?limit=100')
  t.equal(hers.length, CLIENTS)
  t.ok(hers.every(({ operation }: any) => operation === 'listPets'), 'nothing of another account')
})
