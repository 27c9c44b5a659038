import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openConnection } from '../../src/database/sqlite/open-connection.ts'
import { untilUnlocked } from '../../src/database/sqlite/transactions.ts'
import type { Document } from '../../src/openapi/document.ts'
import { contractOfDocument, type Contract } from '../support/contract.ts'
import { createClient, type Client } from './client.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { createReport, type Report } from './report.ts'
import { startService, type Service, type ServiceOptions } from './service.ts'

/** What a scenario works with. Everything that it starts through the context ends with it. */
export interface ScenarioContext {
  report: Report
  quick: boolean
  /** The number of worker processes (`PROCESSES`) of each service, if the environment variable of this name sets it. */
  processes: number
  /**
   * The factor for time limits. The short form runs beside other tests and on machines of any speed, so that its limits
   * only tell a slow answer from one that never comes.
   */
  slack: number
  /** Creates an empty database. */
  freshUrl: () => Promise<string>
  /** Returns the URL of a SQLite file that does not exist yet, also in a run on PostgreSQL. */
  sqliteUrl: () => string
  start: (settings: Record<string, string>, options?: ServiceOptions) => Promise<Service>
  client: (port: () => number, options?: { sockets?: number, key?: string }) => Client
  /** Opens an account over HTTP, with pets in stock, and a ledger of its writes. */
  openStore: (port: () => number, options?: StoreOptions) => Promise<Store>
  atEnd: (action: () => unknown) => void
}

export interface StoreOptions { sockets?: number, pets?: number, units?: number }

export interface Store {
  account: number
  key: string
  categoryId: number
  /** The ids of the pets in stock. */
  pets: number[]
  client: Client
  ledger: Ledger
}

export type Scenario = (context: ScenarioContext) => Promise<void>

export interface Setting {
  /** A PostgreSQL server. Without one the database is SQLite. */
  serverUrl: string | undefined
  quick: boolean
}

/** Runs a scenario. An error that it throws is a violation. */
export async function runScenario (name: string, scenario: Scenario, { serverUrl, quick }: Setting): Promise<Report> {
  const database = serverUrl === undefined ? 'SQLite' : 'PostgreSQL'
  const report = createReport(name, database)
  const cleanups: Array<() => unknown> = []
  const atEnd = (action: () => unknown): void => { cleanups.unshift(action) }
  const contract = await loadContract()

  const context: ScenarioContext = {
    report,
    quick,
    processes: serverUrl === undefined ? 1 : Number(process.env['PROCESSES'] ?? 1),
    slack: quick ? 20 : 1,
    atEnd,
    freshUrl: async () => serverUrl === undefined ? context.sqliteUrl() : await createPostgresDatabase(serverUrl),
    sqliteUrl () {
      const folder = mkdtempSync(join(tmpdir(), 'petstore-torture-'))
      atEnd(() => { rmSync(folder, { recursive: true, force: true }) })
      return `file:${join(folder, 'petstore.db')}`
    },
    async start (settings, options) {
      // Beside other tests, a healthy database can need longer than the default to respond.
      const patient = quick ? { REQUEST_TIMEOUT_MS: '60000' } : {}
      const service = await startService({ ...patient, ...settings }, options)
      atEnd(async () => { await service.kill() })
      return service
    },
    client (port, options) {
      const client = createClient(port, contract, report, options)
      atEnd(client.close)
      return client
    },
    async openStore (port, { sockets = 64, pets = 5, units = 200 } = {}) {
      const signUp = { method: 'POST', path: '/accounts', body: { name: 'A store' } }
      const { body: { id: account, apiKey: key } } = await context.client(port).send(signUp)
      const client = context.client(port, { sockets, key })
      const ledger = createLedger(report)
      const send = async (method: string, path: string, body: unknown): Promise<any> => {
        const reply = await client.send({ method, path, body })
        if (reply.status >= 300 || reply.status === 0) {
          throw new Error(`${method} ${path} is answered ${reply.status} ${reply.text}`)
        }
        return reply.body
      }
      const { id: categoryId } = await send('POST', '/categories', { name: 'Dogs' })
      const ids: number[] = []
      for (let i = 0; i < pets; i++) {
        const name = `stocked ${i}`
        const { id } = await send('POST', '/pets', { name, categoryId })
        await send('PATCH', `/inventory/${id}`, { quantity: units })
        ledger.pets.set(name, { id, acknowledged: true })
        ids.push(id)
      }
      return { account, key, categoryId, pets: ids, client, ledger }
    }
  }

  try {
    await scenario(context)
  } catch (error) {
    report.violations.push(`the scenario failed: ${error instanceof Error ? error.stack : String(error)}`)
  }
  for (const end of cleanups) {
    try {
      await end()
    } catch (error) {
      report.violations.push(`the cleanup failed: ${String(error)}`)
    }
  }
  return report
}

/** Creates a database on a server. It is not dropped: the server's files are deleted with it. */
export async function createPostgresDatabase (serverUrl: string): Promise<string> {
  const name = `torture_${randomBytes(6).toString('hex')}`
  const server = new pg.Client({ connectionString: serverUrl })
  await server.connect()
  await server.query(`CREATE DATABASE ${name}`)
  await server.end()
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

let contract: Promise<Contract> | undefined

/** Reads the service's document from an app that does not listen. */
async function loadContract (): Promise<Contract> {
  contract ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-document-'))
    const url = `file:${join(folder, 'none.db')}`
    const app = await buildApp(readConfig({ LOG_LEVEL: 'silent', DELIVERY: 'false', DATABASE_URL: url }))
    await app.ready()
    const document = app.swagger() as unknown as Document
    await app.close()
    rmSync(folder, { recursive: true, force: true })
    return contractOfDocument(document)
  })()
  return await contract
}

/** Blocks the service's writes of pets and orders with a lock of this process. @returns a function that releases it */
export async function lockWrites (url: string): Promise<() => Promise<void>> {
  if (url.startsWith('file:')) {
    const connection = await openConnection(url)
    await untilUnlocked(20_000, () => { connection.runScript('BEGIN IMMEDIATE') })
    return async () => {
      connection.runScript('ROLLBACK')
      connection.close()
    }
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN')
  await client.query('LOCK TABLE pets IN EXCLUSIVE MODE')
  return async () => { await client.end() }
}
