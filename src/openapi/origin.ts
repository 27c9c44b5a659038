import type { FastifyRequest } from 'fastify'
import { originOf } from '../http/request-origin.ts'

/** Stands for the origin of the request in documents, where the service has no public address. */
export const PLACEHOLDER_ORIGIN = 'http://petstore.invalid'

/** Returns the text of a document for a client: its addresses are those at which the client reached the service. */
export function withOriginOf (request: FastifyRequest, text: string): string {
  return text.replaceAll(PLACEHOLDER_ORIGIN, originOf(request))
}
