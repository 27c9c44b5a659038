import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { contractOfDocument, type Contract } from '../support/contract.ts'
import type { Document, Shot } from './requests.ts'
import { isReference, kindOfPath } from './arbitraries.ts'

export interface Answer { status: number, headers: IncomingHttpHeaders, text: string, body: any }

/** The service on one database, and what is known there: the same record has another id on each side. */
export interface Side {
  document: Document
  /** Opens a new account; everything known of the old one is forgotten. */
  begin: () => Promise<void>
  fire: (shot: Shot, requestId: string) => Promise<Fired>
  close: () => Promise<void>
}

export interface Fired {
  answer: Answer
  /** The answer as it must be on every database: ids by their order, times and secrets by their names. */
  plain: string
  /** What is not as the document says. */
  problem: string | undefined
  /** A record in its path that exists. */
  there: boolean
}

export async function openSide (url: string): Promise<Side> {
  const app = await buildApp(readConfig({ LOG_LEVEL: 'silent', PORT: '0', DELIVERY: 'false', DATABASE_URL: url, QUEUE_LIMIT: '5000' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true })
  const { body: document } = await send(agent, port, 'GET', '/openapi.json', {})
  const contract: Contract = contractOfDocument(document)

  let key = ''
  /** Ids in order of creation, those that are gone included. */
  let ids = new Map<string, Array<string | number>>()
  let gone = new Set<string>()

  function resolved (value: unknown): unknown {
    if (isReference(value)) {
      const known = ids.get(value.kind) ?? []
      const id = known.length === 0 ? (value.kind === 'message' ? 'msg_zzzzzzzzzzzzzzzzzzzzzzzzzz' : 900719925474098) : known[value.n % known.length]!
      return value.cursor === true ? Number(id).toString(36) : id
    }
    if (Array.isArray(value)) return value.map(resolved)
    if (value !== null && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner)]))
    return value
  }

  function symbol (kind: string, id: unknown): string | undefined {
    const n = (ids.get(kind) ?? []).findIndex((known) => String(known) === String(id))
    return n < 0 ? undefined : `${kind}#${n}`
  }

  function plainBody (value: unknown, kind: string): unknown {
    if (Array.isArray(value)) return value.map((item) => plainBody(item, kind))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => {
      if (['createdAt', 'timestamp', 'lastUsedAt', 'at'].includes(name)) return [name, 'TIME']
      if (['apiKey', 'prefix', 'secret'].includes(name)) return [name, 'SECRET']
      if (name === 'id') return [name, kind === 'event' ? inner : symbol(kind, inner) ?? `new ${kind}`]
      const [, other] = /^(.+)Id$/.exec(name) ?? []
      if (other !== undefined) return [name, symbol(other, inner) ?? inner]
      if (kind === 'event' && name === 'data') return [name, Object.fromEntries(Object.entries(inner as object).map(([kind, record]) => [kind, plainBody(record, kind)]))]
      return [name, plainBody(inner, kind)]
    }))
  }

  function plainHeaders (headers: IncomingHttpHeaders, kind: string, list: boolean): Record<string, unknown> {
    const { date, connection, 'keep-alive': _, ...rest } = headers
    const plain: Record<string, unknown> = { ...rest }
    // A list's tag is made of its text; the text is compared itself.
    if (list && headers.etag !== undefined && headers.etag.length > 20) plain['etag'] = 'of the list'
    if (headers.location !== undefined) plain['location'] = headers.location.replace(/[^/]+$/, (id) => symbol(kind, id) ?? `new ${kind}`)
    if (headers.link !== undefined) {
      plain['link'] = String(headers.link)
        .replace(/([?&]cursor=)([0-9a-z]+)/g, (_, name: string, cursor: string) => `${name}${symbol(kind, parseInt(cursor, 36)) ?? 'position'}`)
        .replace(/([?&](?:id|petId|categoryId)=)(\d+)/g, (_, name: string, id: string) => `${name}${symbol(/categoryId/.test(name) ? 'category' : 'pet', id) ?? id}`)
    }
    delete plain['content-length']
    return plain
  }

  async function begin (): Promise<void> {
    ids = new Map()
    gone = new Set()
    const opened = await send(agent, port, 'POST', '/accounts', { 'content-type': 'application/json' }, '{"name": "A store"}')
    key = opened.body.apiKey
    // The use of a key is noted behind the first request's back; the comparison begins after that.
    for (let noted = false; !noted;) {
      const { body } = await send(agent, port, 'GET', '/account/keys', { authorization: `Bearer ${key}` })
      noted = body[0]?.lastUsedAt !== undefined
    }
    const keys = await send(agent, port, 'GET', '/account/keys', { authorization: `Bearer ${key}` })
    ids.set('key', [keys.body[0].id])
  }

  async function fire (shot: Shot, requestId: string): Promise<Fired> {
    const { method, params, query, headers, authorization, raw } = shot
    const kind = kindOfPath(shot.path)
    let there = !/\{/.test(shot.path)
    const path = shot.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const id = String(resolved(params[name]))
      const named = symbol(name.replace(/Id$/, ''), id)
      if (named !== undefined && !gone.has(named)) there = true
      return id
    })
    const search = query.map(([name, value]) => `${name}=${String(resolved(value))}`).join('&')
    const target = search === '' ? path : `${path}?${search}`
    const sent = {
      ...authorization === null ? {} : { authorization: authorization ?? `Bearer ${key}` },
      'request-id': requestId,
      ...headers
    }
    const payload = raw === undefined ? shot.body === undefined ? undefined : JSON.stringify(resolved(shot.body)) : Buffer.from(raw, 'latin1')
    const answer = await send(agent, port, method, target, sent, payload)

    if (answer.status === 201 && answer.body.id !== undefined && !replayed(answer)) ids.set(kind, [...ids.get(kind) ?? [], answer.body.id])
    const body = plainBody(answer.body, kind)
    const plain = JSON.stringify([answer.status, body, answer.body === undefined ? answer.text : '', plainHeaders(answer.headers, kind, Array.isArray(answer.body) || answer.status === 304 || method === 'HEAD')])
    if (answer.status === 204 && method === 'DELETE' && !replayed(answer)) gone.add(symbol(kind, path.split('/').at(-1)) ?? '')
    return { answer, plain, there, problem: contract.problemOf(method, target, answer) }
  }

  return {
    document,
    begin,
    fire,
    async close () {
      agent.destroy()
      await app.close()
    }
  }
}

function replayed ({ headers }: Answer): boolean {
  return headers['idempotency-replayed'] !== undefined
}

async function send (agent: Agent, port: number, method: string, path: string, headers: Record<string, string>, payload?: string | Buffer): Promise<Answer> {
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
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
