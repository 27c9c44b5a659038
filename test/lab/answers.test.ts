// Only on SQLite: answers are held back in memory; the tests of faults run the statements.

import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { createHeldBytes } from '../../src/lab/held-bytes.ts'
import { startApp, type Client } from '../support/app.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { leaveWhileItWaits } from '../support/socket.ts'
import { newFault } from './fixture.ts'
import { eventTypes, receive } from './receive.ts'

const ACCOUNT_BYTES = 8_388_608

t.test('what faults hold back is limited for each account and for the process', async (t) => {
  const held = createHeldBytes()
  const release = held.reserve(1, ACCOUNT_BYTES)!
  t.equal(held.reserve(1, 1), undefined)
  for (let account = 2; account <= 8; account++) t.ok(held.reserve(account, ACCOUNT_BYTES))
  t.equal(held.reserve(9, 1), undefined)
  release()
  release()
  t.ok(held.reserve(9, ACCOUNT_BYTES), 'as much as was released')
  t.equal(held.reserve(1, 1), undefined, 'and no more')
})

t.test('answers to a client that injected faults', async (t) => {
  const running = await startApp(t, { CORS_ORIGINS: 'https://a.example', DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const { app, port, openAccount } = running

  await t.test('answers beyond the limit are not held back, and say so', async (t) => {
    const ada = await openAccount()
    const message = '漢'.repeat(10_000)
    await Promise.all(Array.from({ length: 36 }, async () => await ada.post('/messages', { message })))
    const { text } = await ada.get('/messages?limit=100')
    const id = await newFault(ada, { operation: 'listMessages', effect: { type: 'delay', ms: 60_000 }, times: 12 })
    const answers: IncomingMessage[] = []
    const requests = Array.from({ length: 12 }, (): ClientRequest => httpRequest({
      port, host: '127.0.0.1', path: '/messages?limit=100', agent: false, headers: { authorization: `Bearer ${ada.key}` }
    }, (answer) => { answers.push(answer.resume()) }).on('error', () => {}).end())
    const fitting = Math.floor(ACCOUNT_BYTES / Buffer.byteLength(text))
    await eventually(() => answers.length === 12 - fitting)
    t.same(answers.map(({ headers }) => headers['petstore-fault']), Array(12 - fitting).fill(`${id}; skipped`))
    t.match((await ada.get(`/lab/faults/${id}`)).body, { hits: 12 }, 'every hit is counted')
    for (const request of requests) request.destroy()
    // What clients that left waited for is no longer held.
    await newFault(ada, { operation: 'listMessages', effect: { type: 'delay', ms: 1 }, times: 1_000 })
    const isSkipped = async (): Promise<boolean> =>
      String((await ada.get('/messages?limit=100')).headers['petstore-fault']).includes('skipped')
    await eventually(async () => !await isSkipped())

    await ada.delete('/lab/faults')
    await newFault(ada, { operation: 'listMessages', effect: { type: 'delay', ms: 60_000 }, times: 12 })
    await newFault(ada, { operation: 'listMessages', effect: { type: 'delay', ms: 1 } })
    const get = `GET /messages?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.key}\r\n\r\n`
    const hits = async (): Promise<number> =>
      await app.database.prisma.event.count({ where: { accountId: ada.account!, type: 'fault.hit' } })
    const before = await hits()
    for (let i = 0; i < 12; i++) await leaveWhileItWaits(running, get)
    await eventually(async () => await hits() === before + 12)
    t.notOk(await isSkipped(), 'nothing is held back for clients that left before')

    const { id: slow } = (await ada.post('/lab/faults', {
      operation: 'getMessage', effect: { type: 'trickle', bytesPerSecond: 1 }
    })).body
    const [{ id: messageId }] = (await ada.get('/messages?limit=1')).body
    const first = await new Promise<[IncomingMessage, Buffer]>((resolve) => {
      const headers = { authorization: `Bearer ${ada.key}` }
      httpRequest({ port, host: '127.0.0.1', path: `/messages/${messageId}`, agent: false, headers }, (answer) => {
        answer.once('data', (piece: Buffer) => {
          answer.on('error', () => {}).destroy()
          resolve([answer, piece])
        })
      }).end()
    })
    t.equal(first[0].headers['petstore-fault'], String(slow))
    t.ok(first[1].length >= 40, `a body of 30 KB arrives within 60 s: ${first[1].length} bytes at a time`)
  })

  await t.test('calls beyond the limit are not delayed', async (t) => {
    const ada = await openAccount()
    const receiver = await openReceiver(t)
    for (let i = 0; i < 18; i++) {
      await ada.post('/webhooks', { url: `${receiver.url}?${i}`, events: ['message.created'] })
    }
    const id = await newFault(ada, { effect: { type: 'delay', ms: 60_000 }, times: 18 })
    await ada.post('/messages', { message: 'Hello' })
    await receiver.until(2)
    await eventually(async () => (await ada.get(`/lab/faults/${id}`)).body.hits === 18)
    t.equal(receiver.received.length, 2)
  })

  await t.test('a page of another origin can read every answer', async (t) => {
    const ada = await openAccount()
    const headers = { origin: 'https://a.example' }
    const plain = (await ada.get('/pets', headers)).headers
    t.match(plain, { vary: /Origin/, 'access-control-allow-origin': 'https://a.example' })
    const effects = [
      { type: 'refuse', status: 503 }, { type: 'replace_answer', status: 502 }, { type: 'delay', ms: 1 },
      { type: 'trickle', bytesPerSecond: 1_000 }, { type: 'truncate', bytes: 1_000 },
      { type: 'corrupt', how: 'wrong_type' }
    ]
    for (const effect of effects) {
      await newFault(ada, { operation: 'listPets', effect })
      const answer = await receive(running, ada, 'GET', '/pets', undefined, headers)
      t.ok(answer!.fault, effect.type)
      for (const name of ['vary', 'access-control-allow-origin', 'access-control-expose-headers']) {
        t.equal(answer!.headers[name], plain[name], `${effect.type}: ${name}`)
      }
    }
  })

  await t.test('reset closes the connection of a client that waits for 100 Continue without a byte', async (t) => {
    const ada = await openAccount()
    const body = '{"name":"Dogs"}'
    /** Sends the head, and the body once the service asks for it. */
    const send = async ({ key }: Pick<Client, 'key'>): Promise<string> => await new Promise((resolve) => {
      let text = ''
      const socket = connect(port, '127.0.0.1')
      socket.write(`POST /categories HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n` +
        `Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`)
      socket.on('data', (part: Buffer) => {
        if (text === '' && part.toString().startsWith('HTTP/1.1 100')) socket.write(body)
        text += part.toString()
      }).on('error', () => {}).on('close', () => { resolve(text) })
    })
    t.match(await send(ada), /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 201 /)
    t.match(await send({ key: 'none' }), /^HTTP\/1.1 401 /, 'nobody is asked for a body that nobody reads')
    await newFault(ada, { operation: 'createCategory', effect: { type: 'reset' } })
    t.equal(await send(ada), '')
  })

  await t.test('an error that a client asked for is not logged as an error', async (t) => {
    const ada = await openAccount()
    const errors: unknown[] = []
    const log = app.log as unknown as { child: (...args: unknown[]) => { error: (line: unknown) => void } }
    const { child } = log
    t.teardown(() => { log.child = child })
    log.child = (...args) => Object.assign(child.apply(log, args), { error: (line: unknown) => { errors.push(line) } })
    for (const type of ['refuse', 'replace_answer']) {
      await newFault(ada, { operation: 'listPets', effect: { type, status: 500 } })
      t.equal((await ada.get('/pets')).status, 500)
    }
    t.same(errors, [])
  })

  await t.test('HEAD of a stream is hit like that of any other answer', async (t) => {
    const headers = { accept: 'text/event-stream' }
    const effects = [
      { type: 'refuse', status: 500 }, { type: 'reset' }, { type: 'lose_answer' }, { type: 'delay', ms: 1 },
      { type: 'replace_answer', status: 500 }, { type: 'trickle', bytesPerSecond: 1 }, { type: 'truncate', bytes: 1 },
      { type: 'corrupt', how: 'wrong_type' }
    ]
    for (const effect of effects) {
      const ada = await openAccount()
      const id = await newFault(ada, { operation: 'listEvents', effect })
      const answer = await receive(running, ada, 'HEAD', '/events', undefined, headers)
      const isLost = ['reset', 'lose_answer'].includes(effect.type)
      const field = ['trickle', 'corrupt'].includes(effect.type) ? `${id}; skipped` : String(id)
      t.equal(answer?.fault, isLost ? undefined : field, effect.type)
      t.same(await eventTypes(ada), ['fault.hit'], effect.type)
    }
  })
})
