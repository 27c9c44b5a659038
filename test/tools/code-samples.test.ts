import { execFile, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { Document, Sample } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { operationsOf, pathOf, stockedStore, type Ids, type Operation } from '../support/operations.ts'

const run = promisify(execFile)

/** Runs the source of a sample. @returns the output, which begins with the status of the answer */
type Run = (source: string) => Promise<string>

/** Programs that run each source that they read, a line of JSON, and write a line with a dot after its output. */
const RUN_JAVASCRIPT = `
  for await (const line of (await import('node:readline')).createInterface(process.stdin)) {
    // Without a fragment of its own, a module with the same source would not run again.
    await import('data:text/javascript,' + encodeURIComponent(JSON.parse(line)) + '#' + performance.now())
    console.log('.')
  }`
const RUN_PYTHON = `
import json, sys
for line in sys.stdin:
    exec(json.loads(line), {})
    print('.', flush=True)`

const LANGUAGES: Record<string, { program: string, start: (t: Test) => Run }> = {
  curl: {
    program: 'curl',
    start: () => async (source) =>
      (await run('bash', ['-c', `${source} -s -o /dev/null -m 30 -w '%{http_code}'`])).stdout
  },
  JavaScript: {
    program: process.execPath,
    start: (t) => interpreter(t, process.execPath, ['--input-type=module', '-e', RUN_JAVASCRIPT])
  },
  Python: { program: 'python3', start: (t) => interpreter(t, 'python3', ['-c', RUN_PYTHON]) }
}

/** Starts one process for all samples of a language: a process for each would take most of the time of the test. */
function interpreter (t: Test, program: string, args: string[]): Run {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill() })
  // A process that has ended is noticed at the end of its output.
  child.stdin.on('error', () => {})
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return async (source) => {
    child.stdin.write(`${JSON.stringify(source)}\n`)
    const output: string[] = []
    for (;;) {
      const { done, value } = await lines.next()
      if (done === true) throw new Error(`${program} ended at: ${source}`)
      if (value === '.') return output.join('\n')
      output.push(value)
    }
  }
}

t.test(
  'every operation has samples in three languages, and each of them works once it has a key and ids',
  async (t) => {
    const service = await startApp(t)
    const { paths } = service.app.swagger() as unknown as Document
    const operations = operationsOf(service.app)
    const { body: samples } = await service.nobody.get('/docs/samples.json')
    const samplesOf = ({ operationId }: Operation): Sample[] => samples[operationId]
    for (const operation of operations) {
      t.same(
        samplesOf(operation).map(({ lang, label }) => [lang, label]),
        [
          ['shell', 'curl'],
          ['javascript', 'JavaScript'],
          ['python', 'Python']
        ],
        operation.operationId
      )
    }

    await Promise.all(
      Object.entries(LANGUAGES).map(async ([label, { program, start }]) => {
        if (
          process.env['CI'] !== 'true' &&
          !(await run(program, ['--version']).then(
            () => true,
            () => false
          ))
        ) {
          t.pass(`${label} samples are not run: there is no ${program} on this machine`, { skip: true })
          return
        }
        const runSample = start(t)
        let client = await service.openAccount()
        let ids = await stockedStore(client)
        for (const operation of operations) {
          const { operationId, path, method } = operation
          // The store has no attempt, because its service does not deliver.
          if (operationId === 'getWebhookAttempt') continue
          const { source } = samplesOf(operation).find((sample) => sample.label === label)!
          const success = Object.keys(paths[path]![method.toLowerCase()]!.responses).find((status) =>
            status.startsWith('2')
          )
          // What orders and pets refer to is not deleted.
          const own = { ...ids }
          if (operationId === 'deletePet') {
            own.petId = (await client.post('/pets', { name: 'Waldi', categoryId: ids.categoryId })).body.id
          }
          if (operationId === 'deleteCategory') {
            own.categoryId = (await client.post('/categories', { name: 'Cats' })).body.id
          }
          const output = await runSample(filledIn(source, service.port, client.key!, operation, own))
          t.equal(output.slice(0, 3), success, `${operationId} in ${label}`)
          if (method === 'DELETE') {
            client = await service.openAccount()
            ids = await stockedStore(client)
          }
        }
      })
    )
  }
)

t.test('samples name the public address', async (t) => {
  const { nobody } = await startApp(t, { PUBLIC_URL: 'https://pets.example/shop', BASE_PATH: '/v1' })
  const { body: { getPet } } = await nobody.get('/v1/docs/samples.json')
  t.equal(getPet.length, 3)
  for (const { source } of getPet) t.match(source, 'https://pets.example/shop/v1/pets/7')
})

/** A sample with one's own key and ids, sent to the service of this test. */
function filledIn (source: string, port: number, key: string, operation: Operation, ids: Ids): string {
  // The ids in a file of a store are its own.
  const own: Record<string, unknown> = operation.operationId === 'importSnapshot' ? {} : ids
  const example = new RegExp(operation.path.replace(/\{\w+\}/g, '[^/\\s"]+'))
  return source
    .replace('http://127.0.0.1:0', `http://127.0.0.1:${port}`)
    .replace(example, pathOf(operation, ids))
    .replace('<API_KEY>', key)
    .replace(/((\w+Id)"?: ?)\d+/g, (whole, before: string, name: string) =>
      name in own ? before + String(own[name]) : whole
    )
}
