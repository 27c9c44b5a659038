import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import {
  assertResponse, linkOf, assertListed, readerOf, assertError, assertRejectsInput, walk
} from '../support/checks.ts'

const ID = /^msg_[0-9a-z]{26}$/
const UNKNOWN = 'msg_zzzzzzzzzzzzzzzzzzzzzzzzzz'

t.test('messages', async (t) => {
  const running = await startApp(t)
  const { nobody, openAccount, withKey } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    await assertRejectsInput(t, async (body) => await ada.post('/messages', body), [
      [{}, 'message is required'],
      [{ message: null }, 'message must be a string'],
      [{ message: 5 }, 'message must be a string'],
      [{ message: '' }, 'message must have at least 1 character'],
      [{ message: 'x'.repeat(10_001) }, 'message must have at most 10000 characters'],
      [{ message: 'a\u0000b' }, 'U+0000'],
      [{ message: 'Hello', status: 'delivered' }, '"status" is not allowed'],
      [{ message: 'Hello', id: UNKNOWN }, '"id" is not allowed']
    ])
    await assertRejectsInput(t, async (id) => await ada.get(`/messages/${id}`), [
      ['7', 'messageId'],
      ['msg_', 'messageId'],
      [UNKNOWN.toUpperCase(), 'messageId'],
      [`${UNKNOWN}z`, 'messageId']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/messages?${query}`), [
      ['sort=createdAt', 'sort'],
      ['sort=id&sort=id', 'sort'],
      ['status=queued', '"status" is not allowed']
    ])
  })

  await t.test('nobody can guess an id from the ids before it', async (t) => {
    const ada = await openAccount()
    const send = async (): Promise<Answer> => await ada.post('/messages', { message: 'Hi' })
    const sent = await Promise.all(Array.from({ length: 40 }, send))
    const secrets = sent.map(({ body: { id } }) => String(id).slice(-16))
    t.equal(new Set(secrets).size, 40, 'each has its own random digits')
    for (let place = 0; place < 16; place++) {
      t.ok(new Set(secrets.map((secret) => secret[place])).size > 5, `digit ${place + 1} is random`)
    }
  })

  await t.test('the quickstart works to the letter', async (t) => {
    const account = await nobody.post('/accounts', { name: "Ada's Animals" })
    t.equal(account.status, 201)
    const { apiKey } = account.body
    const json = { 'content-type': 'application/json' }
    const bearer = { authorization: `Bearer ${apiKey}` }
    const send = async (headers: Record<string, string>, body: string) =>
      await nobody.request('POST', '/messages', { headers, body })

    const began = Date.now()
    const sent = await send({ ...bearer, ...json }, '{"message": "Hello"}')
    const { id, createdAt } = sent.body
    assertResponse(t, sent, 201, { id, message: 'Hello', status: 'queued', createdAt })
    t.match(id, ID)
    t.equal(new Date(createdAt).toISOString(), createdAt)
    t.ok(Date.parse(createdAt) >= began && Date.parse(createdAt) <= Date.now(), 'it was created just now')

    assertError(t, await send({ ...bearer, ...json }, '{"message": "Hello"'), 400, 'invalid_json')
    assertError(t, await send({ ...bearer, ...json }, '{}'), 400, 'validation_failed', 'message is required')
    assertError(t, await send(bearer, '{"message": "Hello"}'), 400, 'invalid_content_type', 'application/json')
    assertError(t, await send(json, '{"message": "Hello"}'), 401, 'unauthorized')
    assertError(t, await send({ authorization: 'Bearer wrong', ...json }, '{"message": "Hello"}'), 401, 'unauthorized')
    for (const authorization of [
      apiKey,
      `Token ${apiKey}`,
      `Basic ${apiKey}`,
      `Bearer: ${apiKey}`,
      `Bearer${apiKey}`,
      'Bearer',
      `Bearer ${apiKey} ${apiKey}`
    ]) {
      assertError(
        t,
        await send({ authorization, ...json }, '{"message": "Hello"}'),
        401,
        'unauthorized',
        /\w/,
        authorization.replace(apiKey, '<key>')
      )
    }
  })

  await t.test('a message is created queued, with its address and its entity tag', async (t) => {
    const ada = await openAccount()
    const sent = await ada.post('/messages', { message: 'Hello' })
    assertResponse(t, sent, 201, {
      id: sent.body.id,
      message: 'Hello',
      status: 'queued',
      createdAt: sent.body.createdAt
    })
    t.match(sent.headers, {
      location: `/messages/${sent.body.id}`,
      'cache-control': 'private, no-cache',
      'content-type': 'application/json; charset=utf-8'
    })
    t.match(sent.headers.etag, /^"[^"]+"$/)

    const read = await ada.get(String(sent.headers.location))
    assertResponse(t, read, 200, sent.body)
    t.equal(read.headers.etag, sent.headers.etag)
    t.match(read.headers, { 'cache-control': 'private, no-cache', 'content-type': 'application/json; charset=utf-8' })
    const known = await ada.get(`/messages/${sent.body.id}`, { 'if-none-match': String(read.headers.etag) })
    assertResponse(t, known, 304)
    t.equal(known.headers.etag, read.headers.etag)

    const head = await ada.request('HEAD', `/messages/${sent.body.id}`)
    t.same(
      { status: head.status, text: head.text, etag: head.headers.etag },
      { status: 200, text: '', etag: read.headers.etag }
    )
    t.equal(head.headers['content-length'], read.headers['content-length'])
  })

  await t.test('a text comes back as it was sent', async (t) => {
    const ada = await openAccount()
    for (const message of [
      ' ',
      '\u0001\n\t"\\/',
      'Grüße 🐶 \u2028',
      '🐶'.repeat(10_000),
      'null',
      "'; DROP TABLE messages; --"
    ]) {
      const sent = await ada.post('/messages', { message })
      t.equal(sent.body.message, message)
      t.equal((await ada.get(`/messages/${sent.body.id}`)).body.message, message)
    }
  })

  await t.test('a list goes by time, in pages', async (t) => {
    const ada = await openAccount()
    assertResponse(t, await ada.get('/messages'), 200, [])
    const sent: any[] = []
    for (let i = 0; i < 5; i++) sent.push((await ada.post('/messages', { message: `Hello ${i}` })).body)
    const ids = sent.map(({ id }) => id)
    t.same([...ids].sort(), ids, 'ids sort by time')
    assertResponse(t, await ada.get('/messages'), 200, sent)
    assertResponse(t, await ada.get('/messages?sort=-id'), 200, [...sent].reverse())

    const page = await ada.get('/messages?limit=2')
    assertListed(t, page, ids.slice(0, 2))
    t.equal(linkOf(page, 'first'), '/messages?limit=2')
    t.match(linkOf(page, 'next'), /^\/messages\?limit=2&cursor=[0-9a-z]{1,11}$/)
    t.same(await walk(ada, '/messages?limit=2'), sent)
    t.same(await walk(ada, '/messages?limit=2&sort=-id'), [...sent].reverse())
  })

  await t.test('a page ends at about 1 MB, and the walk misses and repeats nothing', async (t) => {
    const ada = await openAccount()
    // 4 bytes for each character.
    const text = '🐾'.repeat(10_000)
    const ids = (await Promise.all(Array.from({ length: 60 }, async () =>
      (await ada.post('/messages', { message: text })).body.id))).sort()
    for (const path of ['/messages?limit=100', '/messages?limit=100&sort=-id', '/events?limit=100']) {
      const page = await ada.get(path)
      t.equal(page.body.length, 27, `${path}: the record that reaches the limit is the last`)
      t.ok(Buffer.byteLength(page.text) < 1_100_000)
      const found = await walk(ada, path) as Array<{ id: string, data?: { message: { id: string } } }>
      t.same(found.map(({ id, data }) => data?.message.id ?? id).sort(), ids)
    }
    t.equal((await ada.get('/messages?limit=27')).body.length, 27)
    t.equal((await ada.get('/messages?limit=5')).body.length, 5)
    t.equal(linkOf(await ada.get(`/messages?limit=100&cursor=${'z'.repeat(9)}`), 'next'), undefined)
  })

  await t.test('the limit of a page counts the bytes of the response', async (t) => {
    const ada = await openAccount()
    // 1 byte for each character in the database, 6 in JSON.
    const message = '\u0001'.repeat(10_000)
    await Promise.all(Array.from({ length: 30 }, async () => await ada.post('/messages', { message })))
    for (const path of ['/messages?limit=100', '/events?limit=100']) {
      t.equal((await ada.get(path)).body.length, 18, path)
    }
  })

  await t.test('a read-only key reads', async (t) => {
    const ada = await openAccount()
    const { body } = await ada.post('/messages', { message: 'Hello' })
    const reader = await readerOf(ada, withKey)
    assertResponse(t, await reader.get(`/messages/${body.id}`), 200, body)
    assertResponse(t, await reader.get('/messages'), 200, [body])
  })

  await t.test('a message that is not there, or another store\'s, is not found', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const { body } = await bob.post('/messages', { message: 'Hello' })
    assertError(t, await ada.get(`/messages/${UNKNOWN}`), 404, 'message_not_found')
    assertError(t, await ada.get(`/messages/${body.id}`), 404, 'message_not_found')
    assertResponse(t, await ada.get('/messages'), 200, [])
  })
})
