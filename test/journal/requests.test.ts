import { connect } from 'node:net'
import t from 'tap'
import { packageInfo } from '../../src/folders.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { assertError, linkOf } from '../support/checks.ts'
import { newCategory } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'
import { newFault } from '../lab/fixture.ts'
import { receive } from '../lab/receive.ts'
import { turnOn } from './fixture.ts'

async function recorded (client: Client, query = ''): Promise<any[]> {
  return (await client.get(`/lab/requests?limit=100${query}`)).body
}

/** Sends a request and closes the connection when its first bytes arrive, or at once. */
async function leave ({ port }: TestApp, { key }: Client, path: string, isEarly: boolean): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${key}\r\n\r\n`)
      if (isEarly) setTimeout(() => { socket.destroy() }, 50)
    })
    socket.once('data', () => { socket.destroy() }).once('close', () => { resolve() }).once('error', reject)
  })
}

interface Followed {
  /** The text that has arrived. */
  text: () => string
  /** Waits for so many requests. @returns them */
  until: (count: number) => Promise<any[]>
  close: () => void
}

/** Opens the stream of requests. */
async function follow (
  { port }: TestApp, { key }: Client, query = '', headers: Record<string, string> = {}
): Promise<Followed> {
  const stop = new AbortController()
  const { body } = await fetch(`http://127.0.0.1:${port}/lab/requests${query}`, {
    signal: stop.signal, headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers }
  })
  let text = ''
  void (async () => {
    for await (const chunk of body!) text += Buffer.from(chunk).toString()
  })().catch(() => {})
  const requests = (): any[] => [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, data]) => JSON.parse(data!))
  return {
    text: () => text,
    async until (count) {
      await eventually(() => requests().length >= count)
      return requests()
    },
    close: () => { stop.abort() }
  }
}

t.test('recorded requests', async (t) => {
  const running = await startApp(t)
  const { openAccount, withKey } = running

  await t.test('have the outcome of each fault, as the client saw it', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await newCategory(ada, 'A name that is long enough')
    const expected: any[] = [{ outcome: 'answered', status: 201 }]
    for (const [effect, outcome] of [
      [{ type: 'delay', ms: 1 }, { outcome: 'answered', status: 200 }],
      [{ type: 'refuse', status: 500 }, { outcome: 'refused', status: 500 }],
      [{ type: 'refuse', status: 429 }, { outcome: 'refused', status: 429 }],
      [{ type: 'reset' }, { outcome: 'refused', status: undefined, answerFields: undefined }],
      [{ type: 'lose_answer' }, { outcome: 'lost', status: undefined, answer: undefined }],
      [{ type: 'replace_answer', status: 503 }, { outcome: 'answered', status: 503, answer: /injected_fault/ }],
      [{ type: 'truncate', bytes: 5 }, { outcome: 'cut', status: 200, answer: '[{"id' }],
      [{ type: 'truncate', bytes: 100_000 }, { outcome: 'answered', status: 200 }],
      [{ type: 'trickle', bytesPerSecond: 10_000 }, { outcome: 'answered', status: 200, answer: /^\[\{.*\}\]$/ }],
      [{ type: 'corrupt', how: 'invalid_json' }, { outcome: 'answered', status: 200, answer: /\}$/ }]
    ] as const) {
      const faultId = await newFault(ada, { operation: 'listCategories', effect })
      await receive(running, ada, 'GET', '/categories').catch(() => {})
      expected.push({ ...outcome, faultId })
    }
    const faultId = await newFault(ada, { operation: 'deleteCategory', effect: { type: 'truncate', bytes: 0 } })
    await receive(running, ada, 'DELETE', `/categories/${await newCategory(ada)}`)
    expected.push({ status: 201 }, { outcome: 'answered', status: 204, faultId })
    await eventually(async () => (await recorded(ada)).length === expected.length)
    t.match(await recorded(ada), expected)
  })

  await t.test('say that the client left, before its answer or within a stream', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await newFault(ada, { operation: 'listPets', effect: { type: 'delay', ms: 60_000 } })
    await leave(running, ada, '/pets', true)
    await leave(running, ada, '/events', false)
    await eventually(async () => (await recorded(ada)).length === 2)
    t.match(await recorded(ada), [
      { operation: 'listPets', outcome: 'left', status: undefined },
      { operation: 'listEvents', outcome: 'left', status: 200, answer: /^:/ }
    ])
  })

  await t.test('have a client that left while its API key was looked up', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    // No process has seen this key.
    const { body: { apiKey } } = await ada.post('/account/keys', {})
    const socket = connect(running.port, '127.0.0.1', () => {
      const head = 'POST /messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n'
      socket.write(`${head}Authorization: Bearer ${apiKey}\r\n\r\n{"message":"a"}`)
      socket.resetAndDestroy()
    })
    await eventually(async () => (await recorded(ada, '&operation=createMessage')).length === 1)
    const [left] = await recorded(ada, '&operation=createMessage')
    t.equal(left.path, '/messages')
  })

  await t.test('have a stream that a fault cut', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await newFault(ada, { operation: 'listEvents', effect: { type: 'reset' } })
    const cut = await openStream(running, ada)
    await newCategory(ada)
    await cut.ended
    await eventually(async () => (await recorded(ada)).length === 2)
    t.match((await recorded(ada, '&operation=listEvents')), [
      { outcome: 'cut', status: 200, answer: /category.created/ }
    ])
    await newFault(ada, { operation: 'listEvents', effect: { type: 'truncate', bytes: 0 } })
    const empty = await openStream(running, ada)
    t.equal(empty.status, 200, 'the head is sent')
    await empty.ended
    await eventually(async () => (await recorded(ada)).length === 3)
    t.match((await recorded(ada)).at(-1), { outcome: 'cut', status: 200, answer: undefined })
  })

  await t.test('have the path alone of a target for a proxy, also in an archive with an odd Host', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    for (const target of ['http://x/pets?limit=3', 'http://[/pets', 'http://x:99999/pets']) await sendRaw(ada, target, '')
    t.same((await recorded(ada)).map(({ path }) => path), ['/pets?limit=3', '/pets', '/pets'])
    const har = await sendRaw(ada, '/lab/requests', 'Accept: application/har+json\r\n', 'x:99999')
    t.match(har, /^HTTP\/1\.1 200 [^]*"http:\/\/localhost\/pets\?limit=3"/)
  })

  await t.test('are attempts of one only with the whole body', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    for (const end of ['a', 'b', 'b']) await ada.post('/messages', { message: `${'😀'.repeat(9_999)}${end}` })
    const all = await recorded(ada)
    t.same(all.map(({ attemptOf }) => attemptOf), [undefined, undefined, all[1].id])
    t.equal(all[0].bodyTruncated, true)
  })

  await t.test('say that a body was not here when the response was sent', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await newFault(ada, { operation: 'createMessage', effect: { type: 'refuse', status: 503 } })
    const fields = 'Content-Type: application/json\r\nContent-Length: 20\r\n'
    t.match(await sendRaw(ada, '/messages', fields, 'x', 'POST'), /^HTTP\/1\.1 503 /)
    await newFault(ada, { operation: 'createMessage', effect: { type: 'refuse', status: 503 } })
    await sendRaw(ada, '/messages', fields, 'x', 'POST')
    await eventually(async () => (await recorded(ada)).length === 2)
    const refused = { status: 503, body: undefined, bodyTruncated: true, attemptOf: undefined }
    t.match(await recorded(ada), [refused, refused])
  })

  /** Sends a request, and returns the response up to the end of the connection. */
  async function sendRaw (
    { key }: Client, target: string, fields: string, host = 'x', method = 'GET'
  ): Promise<string> {
    const socket = connect(running.port, '127.0.0.1')
    const own = `Host: ${host}\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n`
    socket.write(`${method} ${target} HTTP/1.1\r\n${own}${fields}\r\n`)
    let text = ''
    for await (const bytes of socket) text += bytes
    return text
  }

  await t.test('are listed by filters, a page at a time', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const { body: { id: keyId, apiKey } } = await ada.post('/account/keys', {})
    await ada.get('/pets', { 'petstore-run': 'one' })
    await ada.get('/pets/4711', { 'petstore-run': 'two' })
    await withKey(apiKey).get('/pets', { 'petstore-run': 'two' })
    await ada.get('/pets', { 'petstore-run': 'x'.repeat(256) })
    const all = await recorded(ada)
    t.equal(all.length, 5)
    const by = async (query: string): Promise<number[]> =>
      (await recorded(ada, query)).map(({ id }) => all.findIndex((one) => one.id === id))
    t.same(await by('&operation=listPets'), [1, 3, 4])
    t.same(await by('&status=404'), [2])
    t.same(await by(`&keyId=${keyId}`), [3])
    t.same(await by('&run=two'), [2, 3])
    t.same(await by('&run=two&operation=listPets&status=200'), [3])
    t.same(await by(`&after=${all[2].id}`), [3, 4])
    t.same(await by('&run=x'), [], 'a run of more than 255 characters is none')
    const first = await ada.get('/lab/requests?limit=2&operation=listPets')
    t.same(first.body.map(({ id }: any) => id), [all[1].id, all[3].id])
    const next = await ada.get(linkOf(first, 'next')!)
    t.same(next.body.map(({ id }: any) => id), [all[4].id])
    t.equal(linkOf(next, 'next'), undefined)
    for (const query of ['status=99', 'after=-1', 'limit=101', 'keyId=0', 'run=', 'method=GET']) {
      assertError(t, await ada.get(`/lab/requests?${query}`), 400, 'validation_failed')
    }
    assertError(t, await ada.get('/lab/requests/4711'), 404, 'request_not_found')
  })

  await t.test('are streamed as they end, and resumed', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await ada.get('/pets?limit=1')
    const stream = await follow(running, ada)
    const filtered = await follow(running, ada, '?operation=getPet')
    await ada.get('/pets?limit=2')
    await ada.get('/pets/4711')
    const streamed = await stream.until(3)
    const all = await recorded(ada)
    t.same(streamed, all)
    t.same(await filtered.until(1), [all[2]])
    t.match(stream.text(), /^:\nid: \d+\nevent: request\ndata: \{.*\}\n\nid/)
    const resumed = await follow(running, ada, '?after=0', { 'last-event-id': String(all[1].id) })
    t.same(await resumed.until(1), [all[2]])
    for (const { close } of [stream, filtered, resumed]) close()
    const head = await ada.request('HEAD', '/lab/requests', { headers: { accept: 'text/event-stream' } })
    t.match(head.headers, { 'content-type': 'text/event-stream; charset=utf-8' })
  })

  await t.test('are not parsed for each stream that has a filter', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const streams = await Promise.all([1, 2, 3].map(async () => await follow(running, ada, '?run=filtered')))
    const { parse } = JSON
    t.teardown(() => { JSON.parse = parse })
    const parsed: string[] = []
    JSON.parse = (text, ...others) => {
      parsed.push(String(text))
      return parse(text, ...others) as unknown
    }
    await ada.get('/pets?limit=7')
    await ada.get('/pets?limit=8', { 'petstore-run': 'filtered' })
    for (const stream of streams) await eventually(() => stream.text().includes('"path":"/pets?limit=8"'))
    JSON.parse = parse
    t.same(parsed.filter((text) => text.includes('"fields"')), [])
    for (const stream of streams) {
      t.match(await stream.until(1), [{ path: '/pets?limit=8' }])
      stream.close()
    }
  })

  await t.test('are streamed to no more clients than STREAMS_PER_ACCOUNT, also if they come at once', async (t) => {
    const { port, openAccount } = await startApp(t, { STREAMS_PER_ACCOUNT: '2' })
    const { key } = await openAccount()
    const stop = new AbortController()
    const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream' }
    const answers = await Promise.all(Array.from({ length: 40 }, async () =>
      await fetch(`http://127.0.0.1:${port}/lab/requests`, { headers, signal: stop.signal })))
    t.same(answers.map(({ status }) => status).sort(), [200, 200, ...Array(38).fill(409)])
    stop.abort()
  })

  await t.test('are an HTTP Archive', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const { body: { id } } = await ada.post('/categories?', { name: 'Dogs' })
    await newFault(ada, { operation: 'listPets', effect: { type: 'lose_answer' } })
    await receive(running, ada, 'GET', '/pets?limit=3').catch(() => {})
    await eventually(async () => (await recorded(ada)).length === 2)
    const requests = await recorded(ada)
    const answer = await ada.get('/lab/requests', { accept: 'application/har+json' })
    t.match(answer.headers, { 'content-type': 'application/har+json', vary: /Accept/, etag: /./, link: /rel="first"/ })
    const { log } = answer.body
    t.match(log, { version: '1.2', creator: { name: 'petstore', version: /^\d/ } })
    const [created, lost] = log.entries
    t.match(created, {
      startedDateTime: requests[0].at,
      time: requests[0].durationMs,
      request: {
        method: 'POST',
        url: `http://127.0.0.1:${running.port}/categories?`,
        httpVersion: 'HTTP/1.1',
        cookies: [],
        headers: requests[0].fields,
        queryString: [],
        postData: { mimeType: 'application/json', params: [], text: '{"name":"Dogs"}' },
        headersSize: -1,
        bodySize: 15
      },
      response: {
        status: 201,
        statusText: 'Created',
        content: { mimeType: 'application/json; charset=utf-8', text: JSON.stringify({ id, name: 'Dogs' }) },
        headers: requests[0].answerFields,
        redirectURL: ''
      },
      cache: {},
      timings: { send: 0, receive: 0 },
      _id: requests[0].id
    })
    const request = { queryString: [{ name: 'limit', value: '3' }] }
    t.match(lost, { request, response: { status: 0 }, _outcome: 'lost' })
    const known = await ada.get('/lab/requests', {
      accept: 'application/har+json', 'if-none-match': answer.headers.etag!
    })
    t.equal(known.status, 304)
    t.not((await ada.get('/lab/requests')).headers.etag, answer.headers.etag)
  })

  await t.test('have the addresses in an archive at which clients reach them', async (t) => {
    const { openAccount } = await startApp(t, { PUBLIC_URL: 'https://pets.example/shop' })
    const ada = await openAccount()
    await turnOn(ada)
    await ada.get('/pets?limit=3')
    const { body: { log } } = await ada.get('/lab/requests', { accept: 'application/har+json' })
    t.match(log.entries, [{ request: { url: 'https://pets.example/shop/pets?limit=3' } }])
  })

  await t.test('cost the account the time in which they become an archive', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await ada.get('/pets')
    await recorded(ada)
    const { version } = packageInfo
    t.teardown(() => { Object.defineProperty(packageInfo, 'version', { value: version }) })
    // An archive names it.
    Object.defineProperty(packageInfo, 'version', {
      configurable: true,
      get () {
        const end = performance.now() + 50
        while (performance.now() < end) continue
        return version
      }
    })
    const charged: number[] = []
    const { admission } = running.app
    t.teardown(() => { Reflect.deleteProperty(admission, 'charge') })
    admission.charge = (id, began) => { if (id === ada.account) charged.push(performance.now() - began) }
    t.equal((await ada.get('/lab/requests', { accept: 'application/har+json' })).status, 200)
    t.ok(charged.some((ms) => ms >= 50), charged.join())
  })

  await t.test('of one account are in no other journal', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    await turnOn(ada)
    await turnOn(bob)
    await Promise.all(Array.from({ length: 20 }, async (_, i) =>
      await (i % 2 === 0 ? ada : bob).get(`/pets?limit=${i + 1}`)))
    const numbers = (requests: any[]): number[] =>
      requests.map(({ path }) => Number(path.split('=')[1])).sort((a, b) => a - b)
    t.same(numbers(await recorded(ada)), [1, 3, 5, 7, 9, 11, 13, 15, 17, 19])
    t.same(numbers(await recorded(bob)), [2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
    await bob.get('/pets?limit=22')
    const { id } = (await recorded(bob)).at(-1)
    assertError(t, await ada.get(`/lab/requests/${id}`), 404, 'request_not_found')
    t.match((await ada.get(`/lab/requests/${id - 1}`)).body, { path: /[13579]$/ }, 'of the same id')
  })

  await t.test('are recorded of requests by inject as well', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await running.app.inject({
      method: 'POST', url: '/categories', payload: { name: 'Dogs' }, headers: { authorization: `Bearer ${ada.key}` }
    })
    await eventually(async () => (await recorded(ada)).length === 1)
    t.match(await recorded(ada), [{ operation: 'createCategory', status: 201, outcome: 'answered', answer: /Dogs/ }])
  })
})

t.test('a request beyond the rate limit is recorded as refused, with its body', async (t) => {
  const { app, openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '2' })
  const ada = await openAccount()
  await turnOn(ada)
  await ada.get('/pets')
  t.equal((await ada.post('/messages', { message: 'x' })).status, 429)
  const recorded = async (): Promise<any[]> => {
    const batches = await app.database.prisma.recordedBatch.findMany()
    return batches.flatMap(({ data }) => data.split('\n').map((line) => JSON.parse(line)))
  }
  await eventually(async () => (await recorded()).length === 2)
  const last = (await recorded()).find(({ operation }) => operation === 'createMessage')
  t.match(last, { status: 429, outcome: 'refused', body: '{"message":"x"}' })
})
