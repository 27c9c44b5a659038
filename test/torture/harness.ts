import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { SqliteAdapterFactory } from '../../src/database/sqlite/adapter.ts'
import type { Document } from '../../src/openapi/document.ts'
import { contractOfDocument, type Contract } from '../support/contract.ts'
import { createClient, type Client } from './client.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { createReport, type Report } from './report.ts'
import { startService, type Service, type ServiceOptions } from './service.ts'

/** What a program gets: a database of its own, and everything that it starts ends with it. */
export interface Stage {
  report: Report
  quick: boolean
  /** A new, empty database. */
  freshUrl: () => Promise<string>
  /** A SQLite file that is not there yet, whatever the database is. */
  sqliteUrl: () => string
  start: (settings: Record<string, string>, options?: ServiceOptions) => Promise<Service>
  client: (port: () => number, options?: { sockets?: number, key?: string }) => Client
  /** Opens an account by HTTP, with animals in stock, and keeps books about it. */
  openStore: (port: () => number, options?: StoreOptions) => Promise<Store>
  atEnd: (action: () => unknown) => void
}

export interface StoreOptions { sockets?: number, pets?: number, units?: number }

export interface Store {
  account: number
  key: string
  categoryId: number
  /** Animals with units. */
  pets: number[]
  client: Client
  ledger: Ledger
}

export type Program = (stage: Stage) => Promise<void>

export interface Setting {
  /** A PostgreSQL; without one the database is SQLite. */
  serverUrl: string | undefined
  quick: boolean
}

/** Runs a program; whatever it throws is a violation. */
export async function runScenario (name: string, program: Program, { serverUrl, quick }: Setting): Promise<Report> {
  const database = serverUrl === undefined ? 'SQLite' : 'PostgreSQL'
  const report = createReport(name, database)
  const endings: Array<() => unknown> = []
  const atEnd = (action: () => unknown): void => { endings.unshift(action) }
  const contract = await documented()

  const stage: Stage = {
    report,
    quick,
    atEnd,
    freshUrl: async () => serverUrl === undefined ? stage.sqliteUrl() : await createPostgresDatabase(serverUrl),
    sqliteUrl () {
      const folder = mkdtempSync(join(tmpdir(), 'petstore-torture-'))
      atEnd(() => { rmSync(folder, { recursive: true, force: true }) })
      return `file:${join(folder, 'petstore.db')}`
    },
    async start (settings, options) {
      const service = await startService(settings, options)
      atEnd(async () => { await service.kill() })
      return service
    },
    client (port, options) {
      const client = createClient(port, contract, report, options)
      atEnd(client.close)
      return client
    },
    async openStore (port, { sockets = 64, pets = 5, units = 200 } = {}) {
      const stranger = stage.client(port)
      const { body: { id: account, apiKey: key } } = await stranger.send({ method: 'POST', path: '/accounts', body: { name: 'A store' } })
      const client = stage.client(port, { sockets, key })
      const ledger = createLedger(report)
      const made = async (method: string, path: string, body: unknown): Promise<any> => {
        const reply = await client.send({ method, path, body })
        if (reply.status >= 300 || reply.status === 0) throw new Error(`${method} ${path} is answered ${reply.status} ${reply.text}`)
        return reply.body
      }
      const { id: categoryId } = await made('POST', '/categories', { name: 'Dogs' })
      const ids: number[] = []
      for (let i = 0; i < pets; i++) {
        const name = `stocked ${i}`
        const { id } = await made('POST', '/pets', { name, categoryId })
        await made('PATCH', `/inventory/${id}`, { quantity: units })
        ledger.pets.set(name, { id, acknowledged: true })
        ids.push(id)
      }
      return { account, key, categoryId, pets: ids, client, ledger }
    }
  }

  try {
    await program(stage)
  } catch (error) {
    report.violations.push(`the program broke off: ${error instanceof Error ? error.stack : String(error)}`)
  }
  for (const end of endings) {
    try {
      await end()
    } catch (error) {
      report.violations.push(`it does not end cleanly: ${String(error)}`)
    }
  }
  return report
}

/** It goes with its server. */
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

/** The service's own document, asked of an app that serves nobody. */
async function documented (): Promise<Contract> {
  contract ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-document-'))
    const app = await buildApp(readConfig({ LOG_LEVEL: 'silent', DELIVERY: 'false', DATABASE_URL: `file:${join(folder, 'none.db')}` }))
    await app.ready()
    const document = app.swagger() as unknown as Document
    await app.close()
    rmSync(folder, { recursive: true, force: true })
    return contractOfDocument(document)
  })()
  return await contract
}

/** Locks the writing of pets and orders from another process, until it is let go. */
export async function lock (url: string): Promise<() => Promise<void>> {
  if (url.startsWith('file:')) {
    const adapter = await new SqliteAdapterFactory(url, 20_000).connect()
    const transaction = await adapter.startTransaction()
    return async () => {
      await transaction.rollback()
      await adapter.dispose()
    }
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN')
  await client.query('LOCK TABLE pets IN EXCLUSIVE MODE')
  return async () => { await client.end() }
}
