import t from 'tap'
import { deleteExpiredIdempotencyRecords } from '../../src/database/group-commit/idempotency-records.ts'
import { deleteExpiredEvents } from '../../src/events/retention.ts'
import { startApp } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { newFault } from '../lab/fixture.ts'
import { setLimits } from '../limits/fixture.ts'
import { newCategory, newOrder, newPet, stocked } from '../support/fixtures.ts'
import { storedBytes } from '../support/stored-bytes.ts'

t.test('an account counts what it stores, also when that is changed, swept and deleted', async (t) => {
  const { app: { commit, database }, openAccount } = await startApp(t)
  const { prisma } = database
  const [ada, bob] = [await openAccount(), await openAccount()]
  await newPet(bob)
  const categoryId = await newCategory(ada)
  const { body: { id: petId } } = await ada.post('/pets', { name: 'Réx 🐶', categoryId }, { 'idempotency-key': 'one' })
  await ada.patch(`/pets/${petId}`, { name: 'a far longer name than it had before' }, { 'idempotency-key': 'two' })
  await ada.patch(`/categories/${categoryId}`, { description: 'text '.repeat(100) })
  await ada.patch(`/inventory/${petId}`, { quantity: 5 })
  const orderId = await newOrder(ada, petId)
  await ada.patch(`/store/orders/${orderId}`, { complete: true })
  await ada.delete(`/pets/${await newPet(ada)}`, { 'idempotency-key': 'three' })
  await ada.post('/messages', { message: '😀'.repeat(1_000) })
  await ada.post('/pets', { name: 'Rex', categoryId: 999_999 }, { 'idempotency-key': 'refused' })
  const { body: { id: webhookId } } = await ada.post('/webhooks', { url: 'https://example.com/', enabled: false })
  await ada.post(`/webhooks/${webhookId}/rotate-secret`, {})
  const { body: key } = await ada.post('/account/keys', { label: 'for a test' })
  await ada.delete(`/account/keys/${key.id}`)
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)

  await ada.request('PUT', '/lab/journal', { body: { keep: 10 } })
  const { body: { id: faultId } } = await ada.post('/lab/faults', { operation: 'listPets', effect: { type: 'reset' } })
  await ada.delete(`/lab/faults/${faultId}`)
  await ada.delete('/lab/journal')
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)

  const { body: { id: snapshotId } } = await ada.post('/lab/snapshots', {})
  await ada.post('/pets', { name: 'Max', categoryId })
  await ada.patch(`/categories/${categoryId}`, { description: null })
  await ada.post(`/lab/snapshots/${snapshotId}/restore`, undefined)
  const { text: file } = await ada.get(`/lab/snapshots/${snapshotId}/rows`)
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)
  t.equal((await ada.post('/lab/snapshots/import', file, { 'content-type': 'application/x-ndjson' })).status, 201)
  await ada.delete(`/lab/snapshots/${snapshotId}`)
  await ada.post('/lab/reset', { sample: { pets: 20 } })
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)

  for (const name of ['Cats', 'Dogs', 'x'.repeat(300)]) {
    await prisma.idempotencyRecord.updateMany({ data: { expiresAt: new Date(0) } })
    // Three take over what has expired: an insertion, a deletion that stored no response, and a refused one.
    await ada.post('/categories', { name: 'x'.repeat(200) }, { 'idempotency-key': 'one' })
    await ada.post('/categories', { name }, { 'idempotency-key': 'three' })
    await ada.post('/pets', { name: 'Rex', categoryId: 999_999 }, { 'idempotency-key': 'two' })
    for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)
  }

  await prisma.idempotencyRecord.updateMany({ data: { expiresAt: new Date(0) } })
  await commit(deleteExpiredIdempotencyRecords, {}, { account: null })
  t.equal(await prisma.idempotencyRecord.count(), 0)
  await commit(deleteExpiredEvents, { after: 0, before: '2100-01-01T00:00:00.000Z' }, { account: null })
  t.equal(await prisma.event.count({ where: { accountId: ada.account! } }), 0)
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)

  t.equal((await ada.post('/lab/clock/advance', { to: '9999-12-31T23:59:59.999Z' })).status, 200)
  t.equal((await ada.post('/categories', { name: 'Birds' }, { 'idempotency-key': 'last' })).status, 201)
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)
})

t.test('an account that stores its limit can add nothing, but delete', async (t) => {
  const { openAccount } = await startApp(t, { STORED_BYTES_PER_ACCOUNT: '10000' })
  const [ada, bob] = [await openAccount(), await openAccount()]
  const petId = await stocked(ada, 5)
  await newPet(bob)
  const orderId = await newOrder(ada, petId)
  await setLimits(ada)
  await newFault(ada, { operation: 'listPets', effect: { type: 'refuse', status: 503 }, forSeconds: 60 })
  await newFault(ada, { operation: 'listMessages', effect: { type: 'delay', ms: 1 }, forSeconds: 60 })
  // The account stores less, so the message names the limit and the size of the write.
  const reason = 'Your account may store at most 10000 bytes, and this write needs more than are left'
  assertError(t, await ada.post('/messages', { message: 'x'.repeat(9_900) }), 409, 'storage_limit_reached', reason)
  t.equal((await ada.post('/messages', { message: 'x'.repeat(6_000) })).status, 201)
  const refused = await ada.post('/messages', { message: 'x'.repeat(6_000) }, { 'idempotency-key': 'again' })
  assertError(t, refused, 409, 'storage_limit_reached', reason)
  const grown = await ada.patch(`/pets/${petId}`, { name: 'x'.repeat(60) })
  assertError(t, grown, 409, 'storage_limit_reached')
  t.equal((await ada.get(`/pets/${petId}`)).body.name, 'Rex', 'a refused write changes nothing')
  // The event of a change is stored, and the response to a request with a key.
  assertError(t, await ada.patch(`/pets/${petId}`, { name: 'Max' }), 409, 'storage_limit_reached')
  const unchanged = await ada.patch(`/pets/${petId}`, { name: 'Rex' }, { 'idempotency-key': 'more' })
  assertError(t, unchanged, 409, 'storage_limit_reached')
  t.equal((await ada.patch(`/pets/${petId}`, { name: 'Rex' })).status, 200, 'a write that stores nothing passes')
  t.equal((await bob.post('/messages', { message: 'x'.repeat(6_000) })).status, 201, 'others have their own')
  const { headers: { 'event-id': newest } } = await ada.get('/events')
  for (const path of ['/pets', '/messages']) t.ok((await ada.get(path)).headers['petstore-fault'])
  t.equal((await ada.get('/events')).headers['event-id'], newest, 'hits of faults write no events')
  const faults = (await ada.get('/lab/faults')).body as Array<{ hits: number }>
  t.same(faults.map(({ hits }) => hits), [1, 1])
  t.equal((await ada.delete('/lab/limits', { 'idempotency-key': 'delete' })).status, 204, 'deletions pass')
  t.equal((await ada.delete(`/store/orders/${orderId}`)).status, 204)
  assertError(t, await ada.post('/lab/reset', { sample: { pets: 1 } }), 409, 'storage_limit_reached')
  t.equal((await ada.post('/lab/reset', {})).status, 200, 'a store can be emptied')
  // Each stores an event.
  let resets = 0
  while (resets < 200 && (await ada.post('/lab/reset', {})).status === 200) resets++
  assertError(t, await ada.post('/lab/reset', {}), 409, 'storage_limit_reached', reason)
  t.equal((await ada.delete('/account')).status, 204)
})
