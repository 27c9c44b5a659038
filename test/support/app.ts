import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { readConfig, type Config } from '../../src/config.ts'
import { contractOf, type Contract } from './contract.ts'
import { freshDatabase } from './database.ts'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The parsed JSON text, or `undefined` when it is not JSON. */
  // Tests read members of answers of every shape.
  body: any
}

export interface RequestOptions {
  headers?: Record<string, string | string[]>
  /** Text and buffers are sent unchanged, with the content type of `headers`; other values are sent as JSON. */
  body?: unknown
}

/** Sends requests with the key of one account, or without a key, and checks each answer against the document. */
export interface Client {
  key: string | undefined
  account: number | undefined
  request: (method: string, path: string, options?: RequestOptions) => Promise<Answer>
  get: (path: string, headers?: Record<string, string>) => Promise<Answer>
  post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  patch: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  delete: (path: string, headers?: Record<string, string>) => Promise<Answer>
}

export interface TestApp {
  app: FastifyInstance
  config: Config
  port: number
  /** A client without a key. */
  nobody: Client
  /** Returns a client with a given key. */
  withKey: (key: string, account?: number) => Client
  /** Opens an account. @returns a client with its first key */
  openAccount: (name?: string) => Promise<Client>
}

/** Starts the service on a free port, and on a new database unless the settings name one. It ends with the test. */
export async function startApp (t: Test, settings: Record<string, string> = {}): Promise<TestApp> {
  const defaults = {
    LOG_LEVEL: 'silent',
    PORT: '0',
    DELIVERY: 'false',
    LAB: 'true',
    // Far longer than the default: a slow machine must not change what a test sees.
    REQUEST_TIMEOUT_MS: '60000',
    DATABASE_URL: settings['DATABASE_URL'] ?? await freshDatabase(t)
  }
  const config = readConfig({ ...defaults, ...settings })
  const app = await buildApp(config)
  const agent = new Agent({ keepAlive: true })
  t.teardown(async () => {
    agent.destroy()
    await app.close()
  })
  await app.listen({ port: config.PORT, host: config.HOST })
  const { port } = app.server.address() as AddressInfo
  const contract = contractOf(app, config)

  function withKey (key: string | undefined, account?: number): Client {
    const request: Client['request'] = async (method, path, { headers = {}, body } = {}) => {
      const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const answer = await send(agent, port, method, path, { ...authorization, ...headers }, body)
      assertMatchesContract(t, contract, method, path, answer)
      return answer
    }
    return {
      key,
      account,
      request,
      get: async (path, headers = {}) => await request('GET', path, { headers }),
      post: async (path, body, headers = {}) => await request('POST', path, { body, headers }),
      patch: async (path, body, headers = {}) => await request('PATCH', path, { body, headers }),
      delete: async (path, headers = {}) => await request('DELETE', path, { headers })
    }
  }

  return {
    app,
    config,
    port,
    nobody: withKey(undefined),
    withKey,
    async openAccount (name = 'A store') {
      const { status, body, text } = await withKey(undefined).post('/accounts', { name })
      if (status !== 201) throw new Error(`no account could be opened: ${text}`)
      return withKey(body.apiKey, body.id)
    }
  }
}

/** Fails the test when the document does not describe an answer. */
function assertMatchesContract (t: Test, contract: Contract, method: string, path: string, answer: Answer): void {
  const problem = contract.problemOf(method, path, answer)
  if (problem !== undefined) t.fail(`${method} ${path} is not answered as documented: ${problem}`, { answer })
}

/** The operation that takes lines of JSON, of which a value is one. */
const TAKES_LINES = /^\/lab\/snapshots\/import(\?|$)/
const NDJSON = 'application/x-ndjson'

async function send (
  agent: Agent, port: number, method: string, path: string, headers: Record<string, string | string[]>, body: unknown
): Promise<Answer> {
  const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
  const payload = raw ? body : JSON.stringify(body)
  const fields = raw ? headers : { 'content-type': TAKES_LINES.test(path) ? NDJSON : 'application/json', ...headers }
  return await new Promise((resolve, reject) => {
    const request = httpRequest({ agent, host: '127.0.0.1', port, method, path, headers: fields }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) })
      })
    })
    request.on('error', reject)
    request.end(payload)
  })
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
