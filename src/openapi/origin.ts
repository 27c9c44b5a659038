import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { entityTagOf, type CachedContent } from '../http/cached-content.ts'
import { hostOf, protocolOf } from '../http/request-origin.ts'

const PLACEHOLDER_HOST = 'petstore.invalid'

/** Stands for the origin of the request in documents, where the service has no public address. */
export const PLACEHOLDER_ORIGIN = `http://${PLACEHOLDER_HOST}`

/** A document in the parts between which the host of the request belongs. */
interface Template { parts: Buffer[], etag: string, contents: LRUCache<string, CachedContent> }

/** Maximum number of hosts whose content is kept: a service has few names, and a client can send any. */
const KEPT_HOSTS = 4

/**
 * Returns a function that makes the content of a document for a client: its addresses are those at which the client
 * reached the service. The parts around the host are encoded once, so a host that no client named before costs a copy.
 *
 * @param make returns the text with the placeholder, or for the origin that it is called with, once for each protocol
 */
export function contentByOrigin (
  make: (origin: string) => string | Promise<string>
): (request: FastifyRequest) => Promise<CachedContent> {
  const templates = new Map<string, Promise<Template>>()
  return async (request) => {
    const origin = `${protocolOf(request)}://${PLACEHOLDER_HOST}`
    let template = templates.get(origin)
    if (template === undefined) templates.set(origin, template = makeTemplate(origin, make))
    return contentFor(hostOf(request), await template)
  }
}

function contentFor (host: string, { parts: [first, ...others], etag, contents }: Template): CachedContent {
  if (others.length === 0) return { body: first!, etag }
  let content = contents.get(host)
  if (content === undefined) {
    const hostBytes = Buffer.from(host)
    const body = Buffer.concat([first!, ...others.flatMap((part) => [hostBytes, part])])
    contents.set(host, content = { body, etag: entityTagOf(etag + host) })
  }
  return content
}

async function makeTemplate (origin: string, make: (origin: string) => string | Promise<string>): Promise<Template> {
  const text = (await make(origin)).replaceAll(PLACEHOLDER_ORIGIN, origin)
  const parts = text.split(PLACEHOLDER_HOST).map((part) => Buffer.from(part))
  return { parts, etag: entityTagOf(text), contents: new LRUCache({ max: KEPT_HOSTS }) }
}
