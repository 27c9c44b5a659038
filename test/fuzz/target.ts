import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { contractOfDocument, type Contract } from '../support/contract.ts'
import { expandComponents } from '../support/expand-components.ts'
import type { Document, FuzzRequest } from './requests.ts'
import { isReference, kindOfPath } from './arbitraries.ts'

export interface Answer { status: number, headers: IncomingHttpHeaders, text: string, body: any }

/** The service on one database, with the ids of its records: the same record has another id on each target. */
export interface Target {
  document: Document
  /** Opens a new account and forgets the records of the old one. */
  openAccount: () => Promise<void>
  sendRequest: (request: FuzzRequest, requestId: string) => Promise<FuzzResponse>
  close: () => Promise<void>
}

/** The ids of records that a reset of the store keeps. */
const KEPT = new Set(['keyId', 'webhookId', 'faultId', 'snapshotId'])

/** Fields whose values depend on when the response was sent: the window of a limit may have ended on one database. */
const TIMED = ['petstore-clock', 'ratelimit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

export interface FuzzResponse {
  answer: Answer
  /** The answer with ids, times and secrets replaced by placeholders, as it must be on every database. */
  normalized: string
  /** The first difference from the document. */
  problem: string | undefined
  /** Whether the path names a record that exists. */
  recordExists: boolean
}

export async function openTarget (url: string): Promise<Target> {
  const app = await buildApp(readConfig({
    LOG_LEVEL: 'silent', PORT: '0', DELIVERY: 'false', DATABASE_URL: url, QUEUE_LIMIT: '5000', LAB: 'true'
  }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true })
  const { body } = await send(agent, port, 'GET', '/openapi.json', {})
  const document = expandComponents(body) as unknown as Document
  const contract: Contract = contractOfDocument(body)

  let key = ''
  /** Ids by kind in order of creation, those of deleted records included. */
  let ids = new Map<string, Array<string | number>>()
  let deleted = new Set<string>()
  /** The store was reset or restored: which of its records exist is no longer known here. */
  let isReplaced = false

  function resolveReferences (value: unknown): unknown {
    if (isReference(value)) {
      const known = ids.get(value.kind) ?? []
      const unused = value.kind === 'message' ? 'msg_zzzzzzzzzzzzzzzzzzzzzzzzzz' : 900719925474098
      const id = known.length === 0 ? unused : known[value.n % known.length]!
      return value.cursor === true ? Number(id).toString(36) : id
    }
    if (Array.isArray(value)) return value.map(resolveReferences)
    if (value !== null && typeof value === 'object') {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolveReferences(inner)]))
    }
    return value
  }

  function placeholderOf (kind: string, id: unknown): string | undefined {
    const n = (ids.get(kind) ?? []).findIndex((known) => String(known) === String(id))
    return n < 0 ? undefined : `${kind}#${n}`
  }

  function normalizeBody (value: unknown, kind: string): unknown {
    if (Array.isArray(value)) return value.map((item) => normalizeBody(item, kind))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => {
      if (['createdAt', 'timestamp', 'lastUsedAt', 'at', 'now'].includes(name)) return [name, 'TIME']
      if (name === 'expiresAt' && kind === 'account') return [name, 'TIME']
      if (['apiKey', 'prefix', 'secret'].includes(name)) return [name, 'SECRET']
      // Over the ids of all records.
      if (name === 'hash') return [name, 'HASH']
      if (name === 'id') return [name, kind === 'event' ? inner : placeholderOf(kind, inner) ?? `new ${kind}`]
      const [, other] = /^(.+)Id$/.exec(name) ?? []
      if (other !== undefined) return [name, placeholderOf(other, inner) ?? inner]
      if (kind === 'event' && name === 'data') {
        const records = Object.entries(inner as object).map(([kind, record]) =>
          [kind, INSTANT.test(String(record)) ? 'TIME' : normalizeBody(record, kind)])
        return [name, Object.fromEntries(records)]
      }
      return [name, normalizeBody(inner, kind)]
    }))
  }

  function normalizeHeaders (headers: IncomingHttpHeaders, kind: string): Record<string, unknown> {
    const { date, connection, 'keep-alive': _, ...rest } = headers
    const normalized: Record<string, unknown> = { ...rest }
    // The tag of a list, or of a store, is a hash of its text, which differs in ids. The text is compared itself.
    if (headers.etag !== undefined && headers.etag.length > 20) normalized['etag'] = 'of the list'
    if (headers.location !== undefined) {
      normalized['location'] = headers.location.replace(/[^/]+$/, (id) => placeholderOf(kind, id) ?? `new ${kind}`)
    }
    if (headers.link !== undefined) {
      normalized['link'] = String(headers.link)
        .replace(/([?&]cursor=)([0-9a-z]+)/g, (_, name: string, cursor: string) =>
          `${name}${placeholderOf(kind, parseInt(cursor, 36)) ?? 'position'}`)
        .replace(/([?&](?:id|petId|categoryId)=)(\d+)/g, (_, name: string, id: string) =>
          `${name}${placeholderOf(name.includes('categoryId') ? 'category' : 'pet', id) ?? id}`)
    }
    for (const name of TIMED) if (headers[name] !== undefined) normalized[name] = 'TIME'
    delete normalized['content-length']
    return normalized
  }

  async function openAccount (): Promise<void> {
    ids = new Map()
    deleted = new Set()
    isReplaced = false
    const json = { 'content-type': 'application/json' }
    const opened = await send(agent, port, 'POST', '/accounts', json, '{"name": "A store"}')
    key = opened.body.apiKey
    // The service records the use of a key after its first answer. Comparisons start once that is visible.
    for (let recorded = false; !recorded;) {
      const { body } = await send(agent, port, 'GET', '/account/keys', { authorization: `Bearer ${key}` })
      recorded = body[0]?.lastUsedAt !== undefined
    }
    const keys = await send(agent, port, 'GET', '/account/keys', { authorization: `Bearer ${key}` })
    ids.set('key', [keys.body[0].id])
  }

  async function sendRequest (request: FuzzRequest, requestId: string): Promise<FuzzResponse> {
    const { method, params, query, headers, authorization, raw } = request
    const kind = kindOfPath(request.path)
    let recordExists = !/\{/.test(request.path)
    const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const id = String(resolveReferences(params[name]))
      const named = placeholderOf(name.replace(/Id$/, ''), id)
      const mayBeGone = isReplaced && !KEPT.has(name)
      if (named !== undefined && !deleted.has(named) && !mayBeGone) recordExists = true
      return id
    })
    const search = query.map(([name, value]) => `${name}=${String(resolveReferences(value))}`).join('&')
    const target = search === '' ? path : `${path}?${search}`
    const sent = {
      ...authorization === null ? {} : { authorization: authorization ?? `Bearer ${key}` },
      'request-id': requestId,
      ...headers
    }
    const json = request.body === undefined ? undefined : JSON.stringify(resolveReferences(request.body))
    const payload = raw === undefined ? json : Buffer.from(raw, 'latin1')
    const answer = await send(agent, port, method, target, sent, payload)

    if (answer.status === 201 && answer.body.id !== undefined && !isReplayed(answer)) {
      ids.set(kind, [...ids.get(kind) ?? [], answer.body.id])
    }
    if (path === '/lab/scenarios' && answer.status === 201 && !isReplayed(answer)) {
      const created = (answer.body as Array<{ id: number }>).map(({ id }) => id)
      ids.set('fault', [...ids.get('fault') ?? [], ...created])
    }
    if (/^\/lab\/(reset|.*\/restore)$/.test(request.path) && answer.status === 200) isReplaced = true
    const body = normalizeBody(answer.body, kind)
    const text = answer.body === undefined ? answer.text : ''
    // What was recorded has durations and sizes.
    const normalized = /^\/lab\/(journal|requests)/.test(path)
      ? String(answer.status)
      : JSON.stringify([answer.status, body, text, normalizeHeaders(answer.headers, kind)])
    if (answer.status === 204 && method === 'DELETE' && !isReplayed(answer)) {
      deleted.add(placeholderOf(kind, path.split('/').at(-1)) ?? '')
      // This request deletes all of them.
      if (path === '/lab/faults') ids.get('fault')?.forEach((_, n) => deleted.add(`fault#${n}`))
    }
    return { answer, normalized, recordExists, problem: contract.problemOf(method, target, answer) }
  }

  return {
    document,
    openAccount,
    sendRequest,
    async close () {
      agent.destroy()
      await app.close()
    }
  }
}

function isReplayed ({ headers }: Answer): boolean {
  return headers['idempotency-replayed'] !== undefined
}

async function send (
  agent: Agent, port: number, method: string, path: string, headers: Record<string, string>, payload?: string | Buffer
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const request = httpRequest({ agent, host: '127.0.0.1', port, method, path, headers }, (response) => {
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
  // A file of a store has a record in each line.
  for (const json of [text, `[${text.trimEnd().replaceAll('\n', ',')}]`]) {
    try {
      return JSON.parse(json)
    } catch {}
  }
  return undefined
}
