import type { FastifyReply, FastifyRequest } from 'fastify'

/** A quoted value of a parameter, which may have a comma. Only the parameter `q` counts, and it is never quoted. */
const QUOTED = /"[^"]*"/g

const QUALITY = /^\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*$/i

/**
 * Returns the quality, from 0 to 1, that an `Accept` field gives a media type: that of the most specific range which
 * matches the type, or 0 (RFC 9110 section 12.5.1).
 */
export function qualityOf (accept: string, mediaType: string): number {
  const [group] = mediaType.split('/')
  const qualities = new Map(accept.replace(QUOTED, '').split(',').map((entry): [range: string, quality: number] => {
    const [range = '', ...parameters] = entry.split(';')
    const quality = parameters.map((parameter) => QUALITY.exec(parameter)?.[1]).find((value) => value !== undefined)
    return [range.trim().toLowerCase(), Math.min(Number(quality ?? 1), 1)]
  }))
  return qualities.get(mediaType) ?? qualities.get(`${group}/*`) ?? qualities.get('*/*') ?? 0
}

/** Adds a header field of requests to those that the response depends on. */
export function addVary (reply: FastifyReply, field: string): void {
  reply.header('vary', [reply.getHeader('vary') ?? [], field].flat().join(', '))
}

export const EVENT_STREAM = 'text/event-stream'

/**
 * Returns the media type that a client prefers. Among those to which it gives the same quality, and if it accepts none,
 * that is the first.
 */
export function preferredType<Type extends string> (
  { headers: { accept = '' } }: FastifyRequest, types: readonly [Type, ...Type[]]
): Type {
  return types.reduce((a, b) => qualityOf(accept, b) > qualityOf(accept, a) ? b : a)
}

/** Tells whether a client wants a stream of events. */
export function wantsEventStream (request: FastifyRequest): boolean {
  return preferredType(request, ['application/json', EVENT_STREAM]) === EVENT_STREAM
}
