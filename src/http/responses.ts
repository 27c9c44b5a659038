import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WriteResult } from '../database/group-commit/command.ts'
import type { SerializedRecord } from '../database/sql/json-object.ts'
import type { Page, PageRequest } from '../database/sql/keyset-pagination.ts'
import { weakMatch } from './conditional-requests.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

declare module 'fastify' {
  interface FastifyInstance {
    /** PUBLIC_URL, which makes `Location` and `Link` whole addresses; empty when it is not set. */
    publicUrl: string
    basePath: string
  }
}

/**
 * What a handler returns, for Fastify to send. The type provider knows records and replies, and neither texts
 * nor nothing, so it passes for a reply. A real one would be sent as well, but every read would wait for it.
 */
function asReply (content: unknown): FastifyReply {
  return content as FastifyReply
}

/** For HEAD, where no length is known: Fastify would say that it is 0. */
export function emptyStream (): Readable {
  return Readable.from([])
}

/** 200 with a record, or 304 when the client has it. */
export function sendRecord (request: FastifyRequest, reply: FastifyReply, { record, etag }: SerializedRecord): FastifyReply {
  reply.header('etag', etag)
  return sendText(request, reply, record, etag)
}

interface PageOptions {
  /** The entity tag, where it is not the page's own. */
  tag?: string | undefined
  /** The query parameter that says where a page begins: the opaque cursor, or the number of an event. */
  parameter?: 'cursor' | 'after'
}

/**
 * 200 with a page of a list, or 304 when the client has it; `Link` on both (RFC 8288).
 */
export function sendPage (request: FastifyRequest, reply: FastifyReply, { records, next }: Page, { tag, parameter = 'cursor' }: PageOptions = {}): FastifyReply {
  const link = pageLinks(request, next, parameter)
  // Called strong, so it is no 32-bit hash.
  const etag = tag ?? `"${hash('sha1', records + link, 'base64url')}"`
  reply.header('link', link).header('etag', etag)
  return sendText(request, reply, records, etag)
}

function sendText ({ headers, method }: FastifyRequest, reply: FastifyReply, text: string, etag: string): FastifyReply {
  const known = headers['if-none-match']
  if (known !== undefined && weakMatch(known, etag)) {
    reply.code(304)
    return asReply(method === 'HEAD' ? emptyStream() : undefined)
  }
  reply.header('content-type', JSON_TYPE)
  return asReply(text)
}

/** The links of a page: the same query, at another cursor. */
function pageLinks ({ server, url }: FastifyRequest, next: Page['next'], parameter: 'cursor' | 'after'): string {
  const [path = '', search = ''] = url.split('?')
  const query = new URLSearchParams(search)
  query.delete(parameter)
  const first = address(path, query)
  if (next === null) return `<${first}>; rel="first"`
  query.set(parameter, next.toString(parameter === 'cursor' ? 36 : 10))
  return `<${address(path, query)}>; rel="next", <${first}>; rel="first"`

  function address (path: string, query: URLSearchParams): string {
    return server.publicUrl + path + (query.size === 0 ? '' : `?${query.toString()}`)
  }
}

interface PageQuery extends Record<string, unknown> {
  limit?: number
  cursor?: string
  sort?: string
}

/** What a list's query asks for; everything that is no part of paging filters. A list of ids fits one page. */
export function pageRequest ({ limit, cursor, sort = 'id', ...filters }: PageQuery): PageRequest {
  const ids = Object.values(filters).find((filter) => Array.isArray(filter)) as unknown[] | undefined
  return { limit: limit ?? ids?.length ?? 20, descending: sort === '-id', after: cursor === undefined ? undefined : parseInt(cursor, 36), filters }
}

/** The answer to a write; the same again when its Idempotency-Key was used before. */
export function sendWriteResult (reply: FastifyReply, status: number, { record, etag, replayed }: WriteResult<unknown>, path?: string): FastifyReply {
  if (etag !== undefined) reply.header('etag', etag)
  if (path !== undefined) reply.header('location', locationOf(reply.server, path))
  if (replayed) reply.header('idempotency-replayed', 'true')
  reply.code(status)
  return asReply(record)
}

/** The address of a record, in `Location` and `Link`. */
export function locationOf ({ publicUrl, basePath }: FastifyInstance, path: string): string {
  return publicUrl + basePath + path
}
