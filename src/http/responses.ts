import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WriteResult } from '../database/group-commit/command.ts'
import type { SerializedRecord } from '../database/sql/json-object.ts'
import type { Page } from '../database/sql/keyset-pagination.ts'
import { conditionsOf, isNotModified } from './conditional-requests.ts'
import { pageLinks, type CursorParameter } from './pagination.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * Casts the content of a response to what a handler may return. The type provider knows records and replies, but
 * neither strings nor `undefined`. Returning a real reply would work as well, but every read would wait for it.
 */
function asReply (content: unknown): FastifyReply {
  return content as FastifyReply
}

/** Returns a body for HEAD whose length is unknown: without it, Fastify sends `Content-Length: 0`. */
export function emptyStream (): Readable {
  return Readable.from([])
}

/** Sends 200 with a record, or 304 if the client has it. */
export function sendRecord (
  request: FastifyRequest, reply: FastifyReply, { record, etag }: SerializedRecord, type = JSON_TYPE
): FastifyReply {
  const isKnown = isNotModified(conditionsOf(request), etag)
  reply.header('etag', etag)
  return sendText(request, reply, record, isKnown, type)
}

interface PageOptions {
  /** The entity tag, if it is not computed from the page. */
  tag?: string | undefined
  parameter?: CursorParameter
}

/** Sends 200 with a page of a list, or 304 if the client has it. Both have `Link` (RFC 8288). */
export function sendPage (
  request: FastifyRequest, reply: FastifyReply, { records, next }: Page, { tag, parameter = 'cursor' }: PageOptions = {}
): FastifyReply {
  const link = pageLinks(request, next, parameter)
  const etag = tag ?? pageEtag(records, link)
  const isKnown = isNotModified(conditionsOf(request), etag)
  reply.header('link', link).header('etag', etag)
  return sendText(request, reply, records, isKnown)
}

/** Returns a strong entity tag, which identifies the bytes. For that, a 32-bit hash has too many collisions. */
export function pageEtag (records: string, link = ''): string {
  return `"${hash('sha1', records + link, 'base64url')}"`
}

function sendText (
  { method }: FastifyRequest, reply: FastifyReply, text: string, isKnown: boolean, type = JSON_TYPE
): FastifyReply {
  if (isKnown) {
    reply.code(304)
    return asReply(method === 'HEAD' ? emptyStream() : undefined)
  }
  reply.header('content-type', type)
  return asReply(text)
}

/** Sends the result of a write, which is a replay if its Idempotency-Key was used before. */
export function sendWriteResult (
  reply: FastifyReply, status: number, { record, etag, replayed }: WriteResult<unknown>, path?: string
): FastifyReply {
  if (etag !== undefined) reply.header('etag', etag)
  if (path !== undefined) reply.header('location', locationOf(reply.server, path))
  if (replayed) reply.header('idempotency-replayed', 'true')
  reply.code(status)
  return asReply(record)
}

/** Returns the URL of a record, for `Location` and `Link`. */
export function locationOf ({ publicUrl, basePath }: FastifyInstance, path: string): string {
  return publicUrl + basePath + path
}
