// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import t from 'tap'
import {
  createClient, type Client, type ClientOptions, type FollowOptions
} from '../../src/client/client.ts'
import { readLimits } from '../../src/client/options.ts'
import { startApp } from '../support/app.ts'
import { loseAnswer, openProxy } from './unreliable-proxy.ts'

/** A client whose types do not keep a test from a mistake. */
type Untyped = Record<string, (...args: unknown[]) => Promise<unknown>>

t.test('what the caller gives', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ url }) => url !== '/accounts')
  const { url } = proxy
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A store' })
  const store = createClient({ url, apiKey })
  const untyped = store as unknown as Untyped
  const sentBy = async (use: () => Promise<unknown>): Promise<number> => {
    const before = proxy.requests.length
    await use().catch(() => {})
    return proxy.requests.length - before
  }

  await t.test('undefined is the default of each option', async (t) => {
    const options = { timeoutMs: undefined, retries: undefined, fetch: undefined, apiKey: undefined }
    const headers = { authorization: `Bearer ${apiKey}`, 'x-none': undefined }
    const client = createClient({ url, ...options, headers })
    const call = { timeoutMs: undefined, retries: undefined, signal: undefined, headers: undefined }
    proxy.faults = [loseAnswer]
    const lists = client as unknown as Untyped
    await lists['createMessage']!({ message: 'One' }, { ...call, headers: { 'Idempotency-Key': undefined } })
    t.match(await lists['listMessages']!({ limit: undefined, cursor: undefined }, undefined), { length: 1 })
    t.match(await lists['getAccount']!(call), { name: 'A store' })
    const events = client.followEvents({ after: undefined, signal: undefined })
    t.match((await events.next()).value, { id: 1 })
    await events.return(undefined)
    const limits = { timeoutMs: 30_000, retries: 4 }
    t.strictSame(readLimits({ timeoutMs: undefined, retries: undefined }, limits), limits, 'retries end')
  })

  await t.test('wrong options are refused when the client is made', async (t) => {
    const wrong: Array<[object, RegExp]> = [
      [{ url: 'localhost:3000' }, /absolute http or https/],
      [{ url: '/api' }, /absolute http or https/],
      [{ url: undefined }, /absolute http or https/],
      [{ url: 'ftp://127.0.0.1' }, /absolute http or https/],
      [{ url: 'http://me:secret@127.0.0.1' }, /without a user/],
      [{ url: 'http://127.0.0.1/?a=1' }, /without a query/],
      [{ apiKey: 'psk_ключ' }, /apiKey/],
      [{ apiKey: '' }, /apiKey/],
      [{ apiKey: 'psk_a\n' }, /apiKey/],
      [{ timeoutMs: 0 }, /timeoutMs must be a whole number from 1/],
      [{ timeoutMs: 2 ** 31 }, /timeoutMs/],
      [{ timeoutMs: NaN }, /timeoutMs/],
      [{ retries: -1 }, /retries/],
      [{ retries: Infinity }, /retries/],
      [{ retries: '4' }, /retries/],
      [{ headers: { 'a b': 'c' } }, /header field/],
      [{ headers: { a: 'b\nc' } }, /header field/],
      [{ headers: 'a: b' }, /object/],
      [{ fetch: {} }, /fetch/]
    ]
    for (const [options, message] of wrong) {
      t.throws(() => createClient({ url, apiKey, ...options } as ClientOptions), message, JSON.stringify(options))
    }
    t.throws(() => (createClient as () => Client)(), /must be an object/)
    t.notMatch(messageOf(() => createClient({ url: 'http://me:secret@127.0.0.1' })), 'secret')
    t.match(await createClient({ url: new URL(url + '//'), apiKey }).getAccount(), { name: 'A store' }, 'a URL object')
  })

  await t.test('a wrong call is refused at once, and nothing is sent', async (t) => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const wrong: Array<[string, unknown[], RegExp]> = [
      ['createCategory', [{ name: 1n }], /BigInt/],
      ['createCategory', [circle], /circular/],
      ['getMessage', ['..'], /messageId, not ".."/],
      ['getMessage', ['.'], /messageId/],
      ['getMessage', [''], /messageId/],
      ['getMessage', ['\ud800'], /messageId/],
      ['getPet', [undefined], /getPet needs the petId/],
      ['getPet', [null], /petId/],
      ['getPet', [{}], /petId, not a object/],
      ['listPets', ['limit=3'], /query of listPets/],
      ['listPets', [{ limit: {} }], /parameter limit/],
      ['listPets', [{ id: [] }], /parameter id of listPets must not be an empty list/],
      ['listInventory', [{ petId: [] }], /parameter petId/],
      ['listPets', [{ id: [undefined] }], /parameter id/],
      ['listPets', [{ id: [1, null] }], /parameter id/],
      ['getAccount', ['options'], /options of getAccount/],
      ['getAccount', [{ timeoutMs: -1 }], /timeoutMs/],
      ['getAccount', [{ retries: 0.5 }], /retries/],
      ['getAccount', [{ signal: {} }], /AbortSignal/],
      ['getAccount', [{ headers: { 'x-a': 'ключ' } }], /x-a/]
    ]
    for (const [id, args, message] of wrong) {
      const sent = await sentBy(async () => await t.rejects(untyped[id]!(...args), message, id))
      t.equal(sent, 0)
    }
    for (const after of [-1, 0.5, NaN, '3']) {
      await t.rejects(store.followEvents({ after } as FollowOptions).next(), /after must be/)
    }
    await t.rejects(store.followEvents(null as unknown as FollowOptions).next(), /must be an object/)
  })

  await t.test('an id is one segment of the path', async (t) => {
    for (const id of ['a/b', '../account', '%2e%2e', 'a?b#c', '…']) {
      await t.rejects(store.getMessage(id), { status: 400, code: 'validation_failed' }, id)
      t.equal(proxy.requests.at(-1)!.path, `/messages/${encodeURIComponent(id)}`)
    }
    await t.rejects(untyped['getPet']!(9007199254740993n), { code: 'pet_not_found' })
    t.equal(proxy.requests.at(-1)!.path, '/pets/9007199254740993')
  })

  await t.test('a list that is unchanged cannot be iterated over', async (t) => {
    await store.createCategory({ name: 'Dogs' })
    const list = store.listCategories()
    const etag = (await list.withResponse()).response.headers.get('etag')!
    const headers = [['If-None-Match', etag]] as const
    t.equal(await store.listCategories({}, { headers }), undefined)
    await t.rejects(store.listCategories({}, { headers })[Symbol.asyncIterator]().next(), /unchanged \(304\)/)
    await store.createCategory({ name: 'Cats' })
    const names: string[] = []
    for await (const { name } of store.listCategories({ limit: 1 }, { headers })) names.push(name)
    t.strictSame(names, ['Dogs', 'Cats'], 'the condition is about the first page')
    const record = store.getAccount()
    t.notOk(Symbol.asyncIterator in record, 'a record is no list')
    await record
  })

  await t.test('a keyed write without its key is not repeated', async (t) => {
    proxy.faults = [loseAnswer]
    const headers = { 'Idempotency-Key': null }
    t.equal(await sentBy(async () => await untyped['createMessage']!({ message: 'Two' }, { headers })), 1)
  })
})

function messageOf (use: () => unknown): string {
  try {
    use()
    return ''
  } catch (error) {
    return String(error)
  }
}
