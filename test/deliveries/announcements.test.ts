import t from 'tap'
import type { Changes } from '../../src/database/unit-of-work/success.ts'
import { startApp } from '../support/app.ts'
import { newCategory, newPet } from '../support/fixtures.ts'
import { inOneGroup } from '../support/groups.ts'

t.test('workers learn of a message whatever shares its transaction', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  const categoryId = await newCategory(ada)
  // From its first event on, the process knows that the account has no webhooks.
  await newPet(ada, { categoryId })
  const announced: Changes[] = []
  app.onChange((changes) => { announced.push(changes) })
  // Without the key, both may be written in a few steps.
  for (const headers of [{}, { 'idempotency-key': 'one' }]) {
    const send = async (): Promise<unknown> => await ada.post('/messages', { message: 'Hello' })
    const create = async (): Promise<unknown> => await ada.post('/pets', { name: 'Rex', categoryId }, headers)
    for (const group of [[send, create], [create, send]]) {
      announced.length = 0
      await inOneGroup(app, group)
      t.same(announced.filter(({ deliveries }) => deliveries !== undefined).length, 1, JSON.stringify(announced))
      if ('idempotency-key' in headers) headers['idempotency-key'] = 'two'
    }
  }
})
