import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { TProperties } from '@sinclair/typebox'
import t from 'tap'
import { STORED_TABLES } from '../../src/lab/stored-tables.ts'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertReplayed, assertResponse, readerOf } from '../support/checks.ts'
import { newCategory, newOrder, newPet, setStatus, stocked } from '../support/fixtures.ts'
import { holdWrites, nextWrite } from '../support/groups.ts'
import { leaveWhileItWaits } from '../support/socket.ts'
import { eventually } from '../support/receiver.ts'
import { key } from '../contract/fields.ts'

const LINES = { 'content-type': 'application/x-ndjson' }

async function send (client: Client, file: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> {
  return await client.request('POST', '/lab/snapshots/import', { body: file, headers: { ...LINES, ...headers } })
}

async function exportOf (client: Client): Promise<string> {
  const { body: { id } } = await client.post('/lab/snapshots', {})
  const { status, text, headers } = await client.get(`/lab/snapshots/${id}/rows`)
  if (status !== 200 || headers['content-type'] !== `${LINES['content-type']}; charset=utf-8`) throw new Error(text)
  await client.delete(`/lab/snapshots/${id}`)
  return text
}

/** Imports a file and makes it the store. */
async function restore (client: Client, file: string): Promise<void> {
  const { status, text, body } = await send(client, file)
  if (status !== 201) throw new Error(text)
  const restored = await client.post(`/lab/snapshots/${body.id}/restore`, undefined)
  if (restored.status !== 200) throw new Error(restored.text)
}

/** A store with records in every state. */
async function fill (client: Client): Promise<void> {
  const categoryId = await newCategory(client, 'Dogs')
  await newCategory(client, 'Without pets')
  await client.patch(`/categories/${categoryId}`, { description: 'Ré🐶\n"\\\u0001' })
  const bare = await newPet(client, { categoryId })
  await setStatus(client, bare, 'pending')
  const many = await stocked(client, 10)
  await stocked(client, 0)
  const last = await stocked(client, 1)
  await newOrder(client, last)
  const sold = await stocked(client, 1)
  await newOrder(client, sold, 1, true)
  const open = await newOrder(client, many, 3)
  await client.patch(`/store/orders/${open}`, { shipDate: '2026-12-01T10:00:00.123Z' })
  await newOrder(client, many, 2, true)
  await client.post('/messages', { message: 'Hello\n"world"' })
  await client.post('/messages', { message: 'Again' })
}

const CATEGORY = { type: 'category', id: 4, name: 'Cats' }
const PET = { type: 'pet', id: 7, name: 'Felix', categoryId: 4, status: 'available' }
const INVENTORY = { type: 'inventory', petId: 7, quantity: 3, status: 'available' }
const ORDER = { type: 'order', id: 2, petId: 7, quantity: 1, complete: false }
const MESSAGE = {
  type: 'message',
  id: 'msg_0000000001k7c2q9x4v0ayzr3m',
  message: 'Hello',
  status: 'delivered',
  createdAt: '2026-11-21T12:00:00.123456+02:00'
}

/** A value whose depth overflows the stack of a recursive function. */
const DEEP = '['.repeat(60_000) + ']'.repeat(60_000)

const fileOf = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('')

/** A file that takes all the memory that an account may have for imports. */
function largestFile (last: object): string {
  const lines = Array.from({ length: 70 }, (_, i) => JSON.stringify({ ...CATEGORY, id: i + 5 }).padEnd(119_000))
  const end = `${JSON.stringify(last)}\n`
  const file = `${lines.join('\n')}\n`
  return file + end.padStart(8_388_608 - file.length)
}

function headOf (client: Client, length = 8_388_608): string {
  return 'POST /lab/snapshots/import HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n' +
    `Authorization: Bearer ${client.key}\r\nContent-Length: ${length}\r\n`
}

t.test('a store as a file', async (t) => {
  const running = await startApp(t)
  const { app, port, openAccount, withKey } = running

  await t.test('has the same content after export and import, with other ids', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    await fill(ada)
    await ada.post('/lab/reset', { sample: { pets: 40, seed: 7 } })
    await fill(ada)
    const file = await exportOf(ada)
    const { body: hers } = await ada.get('/lab/state')
    const lines = file.trimEnd().split('\n')
    t.equal(lines.length, Object.values<number>(hers.counts).reduce((a, b) => a + b))
    const answer = await send(bob, file)
    const { id, createdAt } = answer.body
    assertResponse(t, answer, 201, { id, createdAt, counts: hers.counts })
    t.equal(answer.headers.location, `/lab/snapshots/${id}`)
    assertResponse(t, await bob.get(`/lab/snapshots/${id}`), 200, answer.body)
    assertResponse(t, await bob.get('/pets'), 200, [], 'the store does not change')
    t.equal((await bob.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200)
    const { body: his } = await bob.get('/lab/state')
    t.same([his.contentHash, his.counts], [hers.contentHash, hers.counts])
    t.not(his.hash, hers.hash)
    t.same((await ada.get('/lab/state')).body, hers, 'her store is as it was')
    await restore(bob, await exportOf(bob))
    const { body: again } = await bob.get('/lab/state')
    t.same(again.contentHash, hers.contentHash, 'once more')
    t.equal((await app.database.prisma.pet.groupBy({ by: ['id'] })).length, hers.counts.pets * 2)
  })

  await t.test('has every member that a record can have, through a snapshot, a restore and an export', async (t) => {
    const ada = await openAccount()
    const given: Record<string, object> = {
      category: CATEGORY,
      pet: PET,
      inventory: INVENTORY,
      order: ORDER,
      message: { ...MESSAGE, createdAt: '2026-11-21T10:00:00.123Z' }
    }
    // From the schemas, so that a new member of a record is among them.
    const rows = STORED_TABLES.map(({ type, schema }) => {
      const properties = Object.entries(schema.properties as TProperties)
      return { ...Object.fromEntries(properties.map(([name, { example }]) => [name, example])), ...given[type] }
    })
    await restore(ada, fileOf(...rows))
    const exported = (await exportOf(ada)).trimEnd().split('\n').map((line) => JSON.parse(line))
    const withoutIds = (row: object): object =>
      Object.fromEntries(Object.entries(row).filter(([name]) => !/id$/i.test(name)))
    t.same(exported.map((row) => Object.keys(row).sort()), rows.map((row) => Object.keys(row).sort()))
    t.same(exported.map(withoutIds), rows.map(withoutIds))
  })

  await t.test('of an empty store is empty', async (t) => {
    const ada = await openAccount()
    t.equal(await exportOf(ada), '')
    await fill(ada)
    await restore(ada, '')
    t.same((await ada.get('/lab/state')).body.counts, { categories: 0, pets: 0, inventory: 0, orders: 0, messages: 0 })
  })

  await t.test('keeps ids that no row has yet from the records of others', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const { body: { id } } = await send(ada, fileOf(CATEGORY, PET, INVENTORY, ORDER, MESSAGE))
    await fill(bob)
    const { body: his } = await bob.get('/lab/state')
    t.equal((await ada.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200)
    t.same((await bob.get('/lab/state')).body, his, 'a restore overwrites none of them')
    const [pet] = (await ada.get('/pets')).body
    t.match(pet, { name: 'Felix', status: 'available' })
    t.not(pet.id, 7)
    const [order] = (await ada.get('/store/orders')).body
    t.match(order, { petId: pet.id, quantity: 1, complete: false })
    const [message] = (await ada.get('/messages')).body
    t.match(message, { message: 'Hello', status: 'delivered', createdAt: '2026-11-21T10:00:00.123Z' })
    t.not(message.id, MESSAGE.id)
    t.equal((await ada.delete(`/store/orders/${order.id}`)).status, 204, 'the rules of the store hold on')
    t.match((await ada.get(`/inventory/${pet.id}`)).body, { quantity: 4, status: 'available' })
    const changed = await ada.patch(`/pets/${pet.id}`, { name: 'Tom' })
    t.equal(changed.status, 200)
    await ada.post(`/lab/snapshots/${id}/restore`, undefined)
    const stale = await ada.patch(`/pets/${pet.id}`, {}, { 'if-match': changed.headers.etag! })
    assertError(t, stale, 412, 'precondition_failed')
  })

  await t.test('may have its lines in any order, and end without a line feed', async (t) => {
    const ada = await openAccount()
    await restore(ada, fileOf(ORDER, INVENTORY, MESSAGE, PET, CATEGORY).trimEnd())
    const { body: { contentHash } } = await ada.get('/lab/state')
    await restore(ada, fileOf(CATEGORY, PET, INVENTORY, ORDER, MESSAGE).replaceAll('\n', '\r\n'))
    t.equal((await ada.get('/lab/state')).body.contentHash, contentHash)
  })

  await t.test('is imported as a whole or not at all', async (t) => {
    const ada = await openAccount()
    const { status } = await ada.post('/lab/snapshots', {})
    t.equal(status, 201)
    const refused: Array<[file: string | Buffer, says: RegExp | string, code?: string]> = [
      ['{"type":"category","id":4,"name":"Ca', /line 1: (see position|it is incomplete)/, 'invalid_json'],
      [fileOf(CATEGORY, PET).slice(0, -20), /line 2: /, 'invalid_json'],
      [`${fileOf(CATEGORY)}\n${fileOf(PET)}`, 'line 2: it is empty', 'invalid_json'],
      [Buffer.from('{"name":"C\xe9ts"}', 'latin1'), 'line 1: its bytes are not UTF-8', 'invalid_json'],
      [`${fileOf(CATEGORY)}${'['.repeat(130_000)}`, 'line 2 has more than 128192 bytes', 'invalid_json'],
      ['{"type":"category","id":4,"name":"x","__proto__":{}}', 'line 1: "__proto__" is not allowed'],
      [fileOf([CATEGORY]), 'Line 1: it must be an object'],
      [fileOf(CATEGORY, null), 'Line 2: it must be an object'],
      [fileOf({ ...CATEGORY, type: 'store' }), 'Line 1: type must be one of category, pet, inventory, order, message'],
      [fileOf({ id: 1 }), 'Line 1: type must be one of'],
      [fileOf({ type: 'constructor' }), 'Line 1: type must be one of'],
      [fileOf({ ...CATEGORY, type: ['category'] }), 'Line 1: type must be one of'],
      [fileOf({ ...CATEGORY, type: { toString: 1 } }), 'Line 1: type must be one of'],
      [fileOf({ ...CATEGORY, type: 0 }).replace('0', DEEP), 'Line 1: type must be one of'],
      [fileOf({ ...CATEGORY, name: 0 }).replace('0', DEEP), 'Line 1: name must be a string'],
      [DEEP, 'Line 1: it must be an object'],
      [fileOf({ ...CATEGORY, accountId: 1 }), 'Line 1: "accountId" is not allowed'],
      [fileOf({ ...CATEGORY, version: 1 }), 'Line 1: "version" is not allowed'],
      [fileOf({ ...CATEGORY, name: '' }), 'Line 1: name must have at least 1 character'],
      [fileOf({ ...CATEGORY, name: 'a\0' }), 'Line 1: name must not contain the character U+0000'],
      [fileOf({ ...CATEGORY, name: 'a\ud800' }), 'Line 1: name must not contain one half of a surrogate pair'],
      [fileOf({ ...CATEGORY, description: null }), 'Line 1: description must be a string'],
      [fileOf({ ...CATEGORY, id: 0 }), 'Line 1: id must be 1 or more'],
      [fileOf({ ...CATEGORY, id: '4' }), 'Line 1: id must be an integer'],
      [fileOf(CATEGORY).replace('4', '9007199254740993'), 'Line 1: id must be 9007199254740991 or less'],
      [fileOf(CATEGORY, PET).replace('"categoryId":4', '"categoryId":1e400'), 'Line 2: categoryId must be'],
      [fileOf(CATEGORY, CATEGORY), 'Line 2: id is already that of the category in line 1'],
      [fileOf(PET), 'Line 1: categoryId must be the id of a category of the file'],
      [fileOf(CATEGORY, { ...PET, status: undefined }), 'Line 2: status is required'],
      [fileOf(CATEGORY, { ...PET, status: 'lost' }), 'Line 2: status must be one of available, pending, sold'],
      [fileOf(CATEGORY, PET, PET), 'Line 3: id is already that of the pet in line 2'],
      [fileOf(CATEGORY, INVENTORY), 'Line 2: petId must be the id of a pet of the file'],
      [fileOf(CATEGORY, PET, INVENTORY, INVENTORY), 'Line 4: petId is already that of the inventory in line 3'],
      [fileOf(CATEGORY, PET, { ...INVENTORY, status: 'sold' }), 'Line 3: status must be that of the pet in line 2'],
      [fileOf(CATEGORY, PET, { ...INVENTORY, quantity: -1 }), 'Line 3: quantity must be 0 or more'],
      [fileOf(CATEGORY, PET, { ...INVENTORY, quantity: 2 ** 52 }), 'Line 3: quantity must be 4503599627370495 or less'],
      [fileOf(CATEGORY, PET, { ...INVENTORY, quantity: 0 }), 'Line 3: status must not be available'],
      [
        fileOf(CATEGORY, { ...PET, status: 'pending' }, { ...INVENTORY, quantity: 0, status: 'pending' }),
        'Line 3: status must be sold with a quantity of 0 and no open order'
      ],
      [fileOf(CATEGORY, PET, ORDER), 'Line 3: petId must be that of a pet with an inventory line'],
      [fileOf(CATEGORY, PET, INVENTORY, { ...ORDER, petId: 8 }), 'Line 4: petId must be the id of a pet of the file'],
      [fileOf(CATEGORY, PET, INVENTORY, { ...ORDER, quantity: 0 }), 'Line 4: quantity must be 1 or more'],
      [fileOf(CATEGORY, PET, INVENTORY, { ...ORDER, complete: undefined }), 'Line 4: complete is required'],
      [fileOf(CATEGORY, PET, INVENTORY, { ...ORDER, shipDate: '2026-02-30T10:00:00Z' }), 'Line 4: shipDate must be'],
      [fileOf(CATEGORY, PET, INVENTORY, ORDER, ORDER), 'Line 5: id is already that of the order in line 4'],
      [fileOf({ ...MESSAGE, id: 'msg_1' }), 'Line 1: id must be msg_ and 26 characters'],
      [fileOf({ ...MESSAGE, status: 'lost' }), 'Line 1: status must be one of queued, processing, delivered, failed'],
      [fileOf(MESSAGE, MESSAGE), 'Line 2: id is already that of the message in line 1']
    ]
    for (const [file, says, code = 'validation_failed'] of refused) {
      assertError(t, await send(ada, file), 400, code, says, String(says))
    }
    const tooMany = Array.from({ length: 10_001 }, (_, i) => ({ ...CATEGORY, id: i + 1 }))
    assertError(t, await send(ada, fileOf(...tooMany)), 409, 'snapshot_too_large', 'The file has more than 10000')
    t.equal((await send(ada, fileOf(...tooMany.slice(1)))).status, 201, 'as many as a snapshot can hold')
    assertError(t, await send(ada, ' '.repeat(8_388_609)), 413, 'payload_too_large', '8388608 bytes')
    for (const type of ['application/json', 'text/plain']) {
      const answer = await send(ada, fileOf(CATEGORY), { 'content-type': type })
      assertError(t, answer, 400, 'invalid_content_type', 'application/x-ndjson')
    }
    const query = { body: fileOf(CATEGORY), headers: LINES }
    assertError(t, await ada.request('POST', '/lab/snapshots/import?x=1', query), 400, 'validation_failed', '"x"')
    assertError(t, await ada.post('/categories', CATEGORY, LINES), 400, 'invalid_content_type', 'application/json')
    t.equal((await ada.get('/lab/snapshots')).body.length, 2)
    t.equal(await app.database.prisma.snapshotRow.count({ where: { accountId: ada.account! } }), 10_000)
    const reader = await readerOf(ada, withKey)
    assertError(t, await send(reader, fileOf(CATEGORY)), 403, 'read_only_key')
  })

  await t.test('is imported if the service can also take and send a snapshot of its records', async (t) => {
    const ada = await openAccount()
    /** As many bytes as a message counts for the size of a snapshot. */
    const sizeOf = (message: string): number => 64 + Buffer.byteLength(JSON.stringify({
      row: 1, id: MESSAGE.id, message, status: MESSAGE.status, created_at: '2026-11-21T10:00:00.123Z', version: 1
    }))
    const textOf = (bytes: number): string => '漢'.repeat(bytes / 3) + 'x'.repeat(bytes % 3)
    const message = textOf(29_700)
    const count = Math.floor(8_000_000 / sizeOf(message))
    const rest = 8_000_000 - count * sizeOf(message) - sizeOf('')
    const file = (last: number): string => fileOf(...Array.from({ length: count + 1 }, (_, i) =>
      ({ ...MESSAGE, id: `msg_${String(i).padStart(26, '0')}`, message: i < count ? message : textOf(last) })))
    await restore(ada, file(rest))
    const { status, body: { id } } = await ada.post('/lab/snapshots', {})
    t.equal(status, 201)
    const { text } = await ada.get(`/lab/snapshots/${id}/rows`)
    t.ok(Buffer.byteLength(text) > 7_900_000 && Buffer.byteLength(text) <= 8_000_000, `${Buffer.byteLength(text)} bytes`)

    const rows = async (): Promise<number> =>
      await app.database.prisma.snapshotRow.count({ where: { accountId: ada.account! } })
    const before = await rows()
    assertError(t, await send(ada, file(rest + 1)), 409, 'snapshot_too_large', /^The file .* 8 MB/)
    t.equal(await rows(), before)
    t.equal((await ada.get('/lab/snapshots')).body.length, 2)
  })

  await t.test('is imported once with an Idempotency-Key', async (t) => {
    const ada = await openAccount()
    const file = fileOf(CATEGORY, PET)
    const first = await send(ada, file, key('one'))
    t.equal(first.status, 201)
    assertReplayed(t, await send(ada, file, key('one')), first, 'the same file')
    const reversed = [CATEGORY, PET].map((row) => Object.fromEntries(Object.entries(row).reverse()))
    assertReplayed(t, await send(ada, fileOf(...reversed).replaceAll(',', ' ,'), key('one')), first, 'the same values')
    const other = await send(ada, fileOf(CATEGORY), key('one'))
    assertError(t, other, 422, 'idempotency_key_reused')
    t.equal((await ada.get('/lab/snapshots')).body.length, 1)
  })

  await t.test('counts among the snapshots of an account', async (t) => {
    const ada = await openAccount()
    for (let i = 0; i < 20; i++) t.equal((await send(ada, fileOf(CATEGORY))).status, 201)
    assertError(t, await send(ada, fileOf(CATEGORY)), 409, 'snapshot_limit_reached', '20 snapshots')
  })

  await t.test('waits in memory with no more than 8 MB of an account', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const unfinished = connect(port, '127.0.0.1')
    unfinished.write(`${headOf(ada)}Expect: 100-continue\r\n\r\n`)
    const [answer] = await once(unfinished, 'data') as [Buffer]
    t.match(String(answer), /^HTTP\/1.1 100 /)
    const file = fileOf(CATEGORY)
    assertError(t, await send(ada, file), 503, 'overloaded')
    t.equal((await send(bob, file)).status, 201, 'others have room')
    unfinished.destroy()
    await eventually(async () => (await send(ada, file)).status === 201)
  })

  await t.test('takes no memory after its client has left, whenever that was', async (t) => {
    const ada = await openAccount()
    await leaveWhileItWaits(running, `${headOf(ada)}\r\n`)
    await eventually(async () => (await send(ada, fileOf(CATEGORY))).status === 201)
    await leaveWhileItWaits(running, `${headOf(ada)}\r\n${largestFile([])}`, 'admitBody')
    await eventually(async () => (await send(ada, fileOf(CATEGORY))).status === 201)
    t.equal((await ada.get('/lab/snapshots')).body.length, 2)
  })

  await t.test('takes memory until it is saved, although its client has left', async (t) => {
    const ada = await openAccount()
    const release = await holdWrites(app)
    const waits = nextWrite(app)
    const leaving = connect(port, '127.0.0.1', () => { leaving.write(`${headOf(ada)}\r\n${largestFile(CATEGORY)}`) })
    const [[, response]] = await Promise.all([once(app.server, 'request'), waits])
    leaving.destroy()
    await once(response as ServerResponse, 'close')
    const second = send(ada, fileOf(CATEGORY))
    await Promise.race([second, nextWrite(app)])
    release()
    assertError(t, await second, 503, 'overloaded')
    await eventually(async () => (await send(ada, fileOf(CATEGORY))).status === 201)
    t.equal((await ada.get('/lab/snapshots')).body.length, 2)
  })

  await t.test('settles messages whose deliveries are not part of it', async (t) => {
    const ada = await openAccount()
    await restore(ada, fileOf({ ...MESSAGE, status: 'processing' }))
    t.match((await ada.get('/messages')).body, [{ status: 'delivered' }])
  })
})
