import type { FastifyRequest } from 'fastify'
import { entityTagOf, type CachedContent } from '../http/cached-content.ts'
import { hostOf, protocolOf } from '../http/request-origin.ts'

const PLACEHOLDER_HOST = 'petstore.invalid'

/** Stands for the origin of the request in documents, where the service has no public address. */
export const PLACEHOLDER_ORIGIN = `http://${PLACEHOLDER_HOST}`

/** A document in the parts between which the host of the request belongs. */
interface Template { parts: Buffer[], etag: string }

/**
 * Returns a function that makes the content of a document for a client: its addresses are those at which the client
 * reached the service. The parts around the host are encoded once and sent as they are: a copy for each of many hosts
 * costs 0.4 ms, most of it for the garbage collector.
 *
 * @param make returns the text with the placeholder, or for the origin that it is called with, once for each protocol
 */
export function contentByOrigin (
  make: (origin: string) => string | Promise<string>
): (request: FastifyRequest) => Promise<CachedContent<Buffer[]>> {
  const templates = new Map<string, Promise<Template>>()
  return async (request) => {
    const origin = `${protocolOf(request)}://${PLACEHOLDER_HOST}`
    let template = templates.get(origin)
    if (template === undefined) templates.set(origin, template = makeTemplate(origin, make))
    return contentFor(hostOf(request), await template)
  }
}

function contentFor (host: string, { parts: [first, ...others], etag }: Template): CachedContent<Buffer[]> {
  if (others.length === 0) return { body: [first!], etag }
  const hostBytes = Buffer.from(host)
  return { body: [first!, ...others.flatMap((part) => [hostBytes, part])], etag: entityTagOf(etag + host) }
}

async function makeTemplate (origin: string, make: (origin: string) => string | Promise<string>): Promise<Template> {
  const text = (await make(origin)).replaceAll(PLACEHOLDER_ORIGIN, origin)
  const parts = text.split(PLACEHOLDER_HOST).map((part) => Buffer.from(part))
  return { parts, etag: entityTagOf(text) }
}
