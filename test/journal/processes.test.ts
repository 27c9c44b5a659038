import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'
import { assertError } from '../support/checks.ts'
import { eventually } from '../support/receiver.ts'
import { newFault } from '../lab/fixture.ts'
import { turnOn } from './fixture.ts'

t.test('a journal has the requests to all processes', async (t) => {
  const url = await freshDatabase(t)
  const services = [
    await startApp(t, { DATABASE_URL: url }),
    await startApp(t, { DATABASE_URL: url }),
    await startApp(t, { DATABASE_URL: url })
  ]
  const ada = await services[0]!.openAccount()
  const clients: Client[] = services.map(({ withKey }) => withKey(ada.key!, ada.account))
  const counted = async (query = ''): Promise<any[]> => (await ada.get(`/lab/requests?limit=100${query}`)).body

  await t.test('soon after it was turned on in one of them', async (t) => {
    await turnOn(ada)
    await ada.get('/pets?limit=1')
    t.equal((await counted()).length, 1, 'at once in this process')
    for (const [i, client] of clients.slice(1).entries()) {
      // They look for it twice a second, and later on a busy machine.
      await eventually(async () => {
        await client.get(`/pets?limit=${i + 2}`)
        return (await counted()).some(({ path }) => path === `/pets?limit=${i + 2}`)
      })
    }
  })

  await t.test('once each, under ids that only ascend', async (t) => {
    // A batch of another process may come after the deletion.
    const began = (await counted()).at(-1).id
    const isOwn = ({ path }: any): boolean => Number(path.split('=')[1]) >= 11
    await Promise.all(clients.flatMap((client, i) =>
      Array.from({ length: 30 }, async (_, n) => await client.get(`/pets?limit=${i * 30 + n + 11}`))))
    const seen: number[] = []
    let last = began
    await eventually(async () => {
      const { body } = await clients[1]!.get(`/lab/requests?limit=100&after=${last}`)
      last = body.at(-1)?.id ?? last
      seen.push(...body.filter(isOwn).map(({ id }: any) => id))
      return seen.length >= 90
    })
    const all = (await counted(`&after=${began}`)).filter(isOwn)
    t.same(seen, all.map(({ id }) => id), 'a client that goes on after the last id misses none')
    const paths = all.map(({ path }) => Number(path.split('=')[1])).sort((a, b) => a - b)
    t.same(paths, Array.from({ length: 90 }, (_, i) => i + 11))
  })

  await t.test('with the attempts that came to different ones', async (t) => {
    await newFault(ada, { operation: 'createMessage', effect: { type: 'refuse', status: 503 } })
    const headers = { 'idempotency-key': 'a' }
    await ada.post('/messages', { message: 'a' }, headers)
    await eventually(async () => (await counted('&operation=createMessage')).length === 1)
    await clients[2]!.post('/messages', { message: 'a' }, headers)
    await eventually(async () => (await counted('&operation=createMessage')).length === 2)
    const [first, second] = await counted('&operation=createMessage')
    t.match([first, second], [{ status: 503 }, { status: 201, attemptOf: first.id }])
  })

  await t.test('until it is turned off', async (t) => {
    await clients[1]!.delete('/lab/journal')
    for (const client of clients) {
      await client.get('/pets')
      assertError(t, await client.get('/lab/journal'), 404, 'journal_not_found')
      t.same(await counted(), [])
    }
  })
})

t.test('a service that stops first records what it holds', async (t) => {
  const url = await freshDatabase(t)
  const first = await startApp(t, { DATABASE_URL: url })
  const ada = await first.openAccount()
  await turnOn(ada)
  await ada.get('/pets')
  await first.app.close()
  const second = await startApp(t, { DATABASE_URL: url })
  t.match((await second.withKey(ada.key!).get('/lab/requests')).body, [{ operation: 'listPets', outcome: 'answered' }])
})

t.test('the journal of a deleted account is erased with it', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  await turnOn(ada)
  await ada.get('/pets')
  await ada.get('/lab/requests')
  await ada.delete('/account')
  const accountId = ada.account!
  await app.database.prisma.account.update({ where: { id: accountId }, data: { deletedAt: new Date(0) } })
  const { prisma } = app.database
  await eventually(async () => await prisma.account.findUnique({ where: { id: accountId } }) === null)
  t.equal(await prisma.recordedBatch.count({ where: { accountId } }), 0)
  t.equal(await prisma.journal.count({ where: { accountId } }), 0)
})
