import { createRequire } from 'node:module'
import t from 'tap'
import { openDemo } from '../../src/seed/demo-store.ts'
import { startApp } from '../support/app.ts'

// A Postman collection that Postman's own converter makes of the document, sent by Postman's runner.

/** Operations whose example is a condition that fails, so that a run does not delete what it still needs. */
const REFUSED = [
  'DELETE /account/keys/{keyId}', 'DELETE /account', 'DELETE /lab/faults', 'DELETE /lab/journal',
  'DELETE /lab/requests', 'PUT /lab/limits'
]

/** What the demo store does not have: its webhooks are disabled, and it has no limits. */
const MISSING = ['GET /webhooks/{webhookId}/attempts/1', 'GET /lab/limits', 'DELETE /lab/limits']

interface Collection { auth?: unknown }
type Done<T> = (error: Error | null, result: T) => void
interface Conversion { output?: Array<{ data: Collection }>, reason?: string }
type Convert = (input: { type: 'json', data: unknown }, options: object, done: Done<Conversion>) => void
interface Execution {
  item: { name: string }
  request: { method: string, url: { getPath: () => string } }
  response?: { code: number, text: () => string }
  requestError?: Error
}
interface Newman { run: (options: object, done: Done<{ run: { executions: Execution[] } }>) => void }

// Neither has types.
const load = createRequire(import.meta.url)

async function convert (document: unknown): Promise<Collection> {
  const { convert } = load('openapi-to-postmanv2') as { convert: Convert }
  return await new Promise((resolve, reject) => {
    // As the choice "Example" of Postman's import sets them.
    const resolution = { requestParametersResolution: 'Example', exampleParametersResolution: 'Example' }
    const options = { ...resolution, folderStrategy: 'Tags' }
    convert({ type: 'json', data: document }, options, (error, { output, reason }) => {
      if (output?.[0] === undefined) reject(error ?? new Error(reason))
      else resolve(output[0].data)
    })
  })
}

async function send (collection: Collection, key: string): Promise<Execution[]> {
  const newman = load('newman') as Newman
  const envVar = [{ key: 'bearerToken', value: key }]
  return await new Promise((resolve, reject) => {
    newman.run({ collection, envVar, reporters: [], timeoutRequest: 60_000 }, (error, { run }) => {
      if (error !== null) reject(error)
      else resolve(run.executions)
    })
  })
}

t.test('a Postman collection of the document runs against the demo store, twice in a row', async (t) => {
  const { app, port, nobody } = await startApp(t)
  const greeting = await openDemo(app)
  const [key = ''] = /psk_\w+/.exec(greeting!(`http://127.0.0.1:${port}`)) ?? []
  const { body: document } = await nobody.get('/openapi.json')
  const operations = Object.values(document.paths as Record<string, object>).flatMap((methods) => Object.keys(methods))
  const collection = await convert(document)
  for (const run of ['first', 'second']) {
    const executions = await send(collection, key)
    t.equal(executions.length, operations.length, `${run} run: every operation`)
    const wrong: string[] = []
    for (const { item, request, response, requestError } of executions) {
      const text = `${request.method} ${request.url.getPath()} (${item.name})`
      const status = response?.code ?? 0
      const isRefused = REFUSED.some((operation) => isRequestOf(operation, request))
      const isMissing = status === 404 && MISSING.some((operation) => isRequestOf(operation, request))
      const passed = isRefused ? status === 412 : isMissing || (status >= 200 && status < 300) || status === 304
      if (!passed) wrong.push(`${text}: ${status} ${response?.text() ?? requestError?.message}`)
    }
    t.strictSame(wrong, [])
  }
})

function isRequestOf (operation: string, { method, url }: Execution['request']): boolean {
  const [wanted, path = ''] = operation.split(' ')
  return method === wanted && new RegExp(`^${path.replace(/\{\w+\}/, '[^/]+')}$`).test(url.getPath())
}
