import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { batchReader, newestRequests } from '../journal/queries.ts'
import { sendOwn } from './call-tool.ts'

const JSON_TYPE = 'application/json'

const OPENAPI = 'petstore://openapi'
const ERRORS = 'petstore://errors'
const REQUESTS = 'petstore://requests'

/** What agents may read beside the tools. */
export const RESOURCES = [
  { uri: OPENAPI, name: 'OpenAPI document', mimeType: JSON_TYPE, description: 'All operations' },
  { uri: ERRORS, name: 'Error codes', mimeType: JSON_TYPE, description: 'Each code with its status' },
  {
    uri: REQUESTS,
    name: 'Newest requests',
    mimeType: JSON_TYPE,
    description: 'The newest requests that the journal of this store recorded'
  }
]

/** The code of a JSON-RPC error: one of those that servers define themselves. */
export const RATE_LIMITED = -32_000

type Contents = { contents: Array<{ uri: string, mimeType: string, text: string }> }

/** Number of requests that one reading returns. */
const NEWEST = 20

/**
 * Reads a resource.
 *
 * @param count counts a reading for the limit of the account, unless it becomes a request that counts for itself
 * @throws ProtocolError if it does not exist, or with the error of the request that it became
 */
export async function readResource (
  uri: string, request: FastifyRequest, errors: object[], count: () => Promise<void>
): Promise<Contents> {
  if (uri !== REQUESTS) await count()
  const text = await textOf(uri, request, errors)
  return { contents: [{ uri, mimeType: JSON_TYPE, text }] }
}

async function textOf (uri: string, request: FastifyRequest, errors: object[]): Promise<string> {
  const { server, auth: { account } } = request
  switch (uri) {
    case OPENAPI: return (await sendOwn(request, { method: 'GET', url: '/openapi-3.1.json' })).payload
    case ERRORS: return JSON.stringify(errors)
    case REQUESTS: {
      // It says whether the journal is on, and waits until the journal has all requests that ended.
      const { statusCode, payload } = await sendOwn(request, { method: 'GET', url: '/lab/journal' })
      if (statusCode >= 400) throw errorOf(statusCode, payload)
      return await newestRequests(batchReader(server.read, account), NEWEST)
    }
    default: throw new ResourceNotFoundError(uri)
  }
}

function errorOf (status: number, payload: string): ProtocolError {
  const error = JSON.parse(payload) as { message: string }
  return new ProtocolError(status === 429 ? RATE_LIMITED : ProtocolErrorCode.InternalError, error.message, error)
}
