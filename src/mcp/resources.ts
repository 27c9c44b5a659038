import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { read } from './call-tool.ts'

const JSON_TYPE = 'application/json'

/** What agents may read beside the tools. */
export const RESOURCES = [
  { uri: 'petstore://openapi', name: 'OpenAPI document', mimeType: JSON_TYPE, description: 'All operations' },
  { uri: 'petstore://errors', name: 'Error codes', mimeType: JSON_TYPE, description: 'Each code with its status' },
  {
    uri: 'petstore://requests',
    name: 'Newest requests',
    mimeType: JSON_TYPE,
    description: 'The newest requests that the journal of this store recorded'
  }
]

/** The paths of the resources that are responses of this service. */
const PATHS: Record<string, string> = {
  'petstore://openapi': '/openapi-3.1.json', 'petstore://requests': '/lab/requests?limit=20'
}

/** Reads a resource. @throws ProtocolError if it does not exist, or with the error of its request */
export async function readResource (
  uri: string, request: FastifyRequest, errors: object[]
): Promise<{ contents: Array<{ uri: string, mimeType: string, text: string }> }> {
  const contents = (value: unknown): { contents: Array<{ uri: string, mimeType: string, text: string }> } =>
    ({ contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(value) }] })
  if (uri === 'petstore://errors') return contents(errors)
  const path = PATHS[uri]
  if (path === undefined) throw new ResourceNotFoundError(uri)
  const { structuredContent: { body }, isError } = await read(request, path)
  if (!isError) return contents(body)
  throw new ProtocolError(ProtocolErrorCode.InternalError, (body as { message: string }).message, body)
}
