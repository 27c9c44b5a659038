import t, { type Test } from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { bodyOf, operationsOf, pathOf, stockedStore, type Ids, type Operation } from '../support/operations.ts'

// Boundary values of every type in a path, query or body. The tables of fields come from the document, so that new
// fields are tested as well.

export const operations = operationsOf((await startApp(t)).app)

/** Starts a service with a store for each test, and returns a function that calls its operations. */
export async function store (
  t: Test
): Promise<{
  client: Client
  ids: Ids
  call: (operation: Operation, fields?: Record<string, unknown>) => Promise<Answer>
}> {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const ids = await stockedStore(client)
  return {
    client,
    ids,
    call: async (operation, fields) =>
      await client.request(operation.method, pathOf(operation, ids), { body: bodyOf(operation, ids, fields) })
  }
}

/** Returns the fields of all bodies that `wanted` selects. */
function fields (wanted: (schema: NonNullable<NonNullable<Operation['body']>['properties']>[string]) => boolean) {
  return operations.flatMap((operation) => Object.entries(operation.body?.properties ?? {})
    .filter(([, schema]) => wanted(schema))
    .map(([name, schema]) => ({ operation, name, schema, label: `${operation.operationId} ${name}` })))
}

/** Returns the parameters of all operations that `wanted` selects. */
function parameters (wanted: (parameter: Operation['parameters'][number]) => boolean) {
  return operations.flatMap((operation) => operation.parameters.filter(wanted)
    .map((parameter) => ({ operation, ...parameter, label: `${operation.operationId} ${parameter.name}` })))
}

export const texts = fields(
  ({ type, format, enum: values }) => type === 'string' && format === undefined && values === undefined
)
export const times = fields(({ format }) => format === 'date-time')
/** Without the numbers of events, which are no ids. */
export const bodyIds = fields(({ format }) => format === 'int64').filter(({ operation }) =>
  operation.operationId !== 'resendEvents')
export const pathIds = parameters(({ in: place, schema }) => place === 'path' && schema.format === 'int64')
export const queryIds = parameters(
  ({ in: place, schema }) =>
    place === 'query' && (schema.items ?? schema).format === 'int64' && (schema.items ?? schema).minimum === 1
)
export const lists = operations.filter(
  ({ method, parameters }) => method === 'GET' && parameters.some(({ name }) => name === 'limit')
)
