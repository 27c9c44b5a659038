import t from 'tap'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { freshDatabase } from '../support/database.ts'

// The schemas of responses also serialize them.

t.test('a record without a required member is never sent: the response is 500', async (t) => {
  const app = await buildApp(readConfig({
    DATABASE_URL: await freshDatabase(t), LOG_LEVEL: 'silent', LAB: 'true', DELIVERY: 'false'
  }))
  t.teardown(async () => { await app.close() })
  const schemas = Object.values(app.getSchemas()) as Array<{ $id: string, required?: string[] }>
  const withRequired = schemas.filter(({ required = [] }) => required.length > 0)
  const errors = new Map<string, string>()
  for (const { $id } of withRequired) {
    app.get(`/incomplete/${$id}`, {
      schema: { response: { 200: { $ref: `${$id}#` } } },
      onError: async (_request, _reply, { message }) => { errors.set($id, message) }
    }, async () => ({}))
  }
  t.ok(['Pet', 'Category', 'Message', 'InventoryItem', 'Account', 'ApiKey'].every((name) =>
    withRequired.some(({ $id }) => $id === name)))
  for (const { $id, required } of withRequired) {
    const { statusCode, body } = await app.inject(`/incomplete/${$id}`)
    t.equal(statusCode, 500, `${$id} ${body}`)
    t.match(body, '"code":"internal_error"', $id)
    t.equal(errors.get($id), `"${required![0]}" is required!`, 'the error handler logs what is missing')
  }
})
