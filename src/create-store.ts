import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCredential } from './accounts/api-key.ts'
import { createAccount } from './accounts/commands.ts'
import { NewAccountSchema, type NewAccount } from './accounts/schemas.ts'
import { buildApp } from './app.ts'
import { createClient, type Client } from './client/client.ts'
import { readConfig, type Config } from './config.ts'
import { migrate } from './database/migrations/migrate.ts'
import { releaseClosedFiles } from './database/sqlite/driver.ts'
import { reachableOrigin } from './http/http-url.ts'
import { valid } from './http/valid-fields.ts'
import { importStore, readStoreFile } from './lab/import-store.ts'

export interface StoreOptions {
  /** The name of the account. */
  name?: string | undefined
  /** A file of records, as `petstore store export` prints it, with which the store begins. */
  from?: string | URL | undefined
  /** Settings of the service, by their names. Default: no log, and a free port of the loopback address. */
  settings?: Record<string, string | number | boolean | undefined> | undefined
}

/** A service of this process with one account. */
export interface Store {
  /** The address of the service, with its base path. */
  url: string
  /** An API key of the account, which may read and write. */
  apiKey: string
  /** A client of the account. */
  client: Client
  /** Stops the service and deletes its database. */
  close: () => Promise<void>
}

const DEFAULTS = { LOG_LEVEL: 'silent', PORT: '0', HOST: '127.0.0.1', WEBHOOKS_ALLOW_PRIVATE: 'true' }

/**
 * Starts the service in this process, for tests: on a free port, with a SQLite database in a temporary folder and one
 * account. It does not read the environment. Any number of stores can run at the same time.
 */
export async function createStore (options: StoreOptions = {}): Promise<Store> {
  const { name = 'Test store', from, settings = {} } = options
  const account = valid<NewAccount>(NewAccountSchema, { name })
  const credential = createCredential()
  const folder = await mkdtemp(join(tmpdir(), 'petstore-'))
  const release = async (): Promise<void> => { await rm(folder, { recursive: true, force: true, maxRetries: 3 }) }
  try {
    const config = readSettings({ DATABASE_URL: `file:${join(folder, 'store.db')}`, ...DEFAULTS }, settings)
    await migrate(config.DATABASE_URL)
    const app = await buildApp(config)
    try {
      await app.listen({ port: config.PORT, host: config.HOST })
      const { apiKey } = credential
      const { record: { id } } = await app.commit(createAccount, { account, credential }, { account: null })
      if (from !== undefined) await importStore(app.commit, id, await readStoreFile(from))
      const url = reachableOrigin(app.listeningOrigin) + app.basePath
      return {
        url,
        apiKey,
        client: createClient({ url, apiKey }),
        async close () {
          await app.close()
          // Windows deletes no open file.
          await releaseClosedFiles()
          await release()
        }
      }
    } catch (error) {
      await app.close()
      throw error
    }
  } catch (error) {
    await release()
    throw error
  }
}

/** Reads settings over defaults. `undefined` counts as not given. @throws {ConfigError | TypeError} */
function readSettings (defaults: Record<string, string>, settings: NonNullable<StoreOptions['settings']>): Config {
  const given = Object.entries(settings).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const])
  const config = readConfig({ ...defaults, ...Object.fromEntries(given) })
  // The environment of a process has variables of other programs, but these settings are for the service alone.
  const unknown = given.find(([name, value]) => value !== '' && !Object.hasOwn(config, name))
  if (unknown !== undefined) throw new TypeError(`The service has no setting ${unknown[0]}`)
  if (config.PROCESSES !== '1') {
    throw new TypeError('A store runs in this process: PROCESSES is a setting of the command petstore start')
  }
  return config
}
