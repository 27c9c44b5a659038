import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { ROOT } from '../support/cli.ts'
import { DELIVERING } from '../support/delivery.ts'
import { openReceiver } from '../support/receiver.ts'
import type { Outcome, Scenario } from './generated-clients/scenarios/scenario.ts'

// Clients that generators of others make from the served document: they compile under strict, and each uses the store.

const FOLDER = join(ROOT, 'test/tools/generated-clients')
/** Below the scenarios' own folder, so that they import the clients by a fixed path. */
const GENERATED = join(FOLDER, 'generated')

const SCENARIOS = readdirSync(join(FOLDER, 'scenarios')).filter((name) => name !== 'scenario.ts')

const EXPECTED: Outcome = {
  pet: { name: 'Rex', status: 'available' },
  stock: 1,
  conflict: 'insufficient_stock',
  pages: [['Dogs', 'Cats'], ['Birds']],
  events: ['pet.created', 'inventory.counted', 'order.placed 2'],
  delivered: 'Hello'
}

t.test('generated clients', async (t) => {
  const { port, nobody } = await startApp(t, DELIVERING)
  const url = `http://127.0.0.1:${port}`
  const temporary = mkdtempSync(join(tmpdir(), 'petstore-clients-'))
  t.teardown(() => { for (const left of [temporary, GENERATED]) rmSync(left, { recursive: true, force: true }) })
  const document = join(temporary, 'openapi.json')
  writeFileSync(document, (await nobody.get('/openapi.json')).text)

  await t.test('are generated from the served document', async (t) => {
    await node(join(FOLDER, 'generate.mjs'), document, GENERATED)
    t.strictSame(readdirSync(GENERATED).sort(), SCENARIOS.map((name) => name.replace('.ts', '')).sort())
  })

  await t.test('compile under strict and noUncheckedIndexedAccess', async (t) => {
    t.equal(await node(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', FOLDER), '')
  })

  await build({
    entryPoints: SCENARIOS.map((name) => join(FOLDER, 'scenarios', name)),
    outdir: temporary,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning'
  })
  for (const name of SCENARIOS) {
    await t.test(`${name}: a store, from its account to a webhook`, async (t) => {
      const receiver = await openReceiver(t)
      const nextDelivery = async () => {
        await receiver.until(1)
        const { body, headers } = receiver.received[0]!
        return { body, headers: headers as Record<string, string> }
      }
      const program = pathToFileURL(join(temporary, name.replace(/ts$/, 'mjs'))).href
      const { default: scenario } = await import(program) as { default: Scenario }
      t.strictSame(await scenario({ url, receiverUrl: receiver.url, nextDelivery }), EXPECTED)
    })
  }
})

/** Runs a program. @returns what it printed to its standard output @throws with its output when it fails */
async function node (program: string, ...args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(process.execPath, [program, ...args], { cwd: ROOT })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string, stderr: string }
    throw new Error(`${program} failed: ${stdout}${stderr}`)
  }
}
