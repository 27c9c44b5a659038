import {
  createMcpHandler, ProtocolError, ProtocolErrorCode, Server, type Tool as McpTool
} from '@modelcontextprotocol/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { packageInfo } from '../folders.ts'
import { callTool, ConnectionLost } from './call-tool.ts'
import { countMessage } from './count-message.ts'
import { RATE_LIMITED, readResource, RESOURCES } from './resources.ts'
import type { OperationTool, ToolSet } from './tools.ts'

const INSTRUCTIONS = 'A pet store. Each tool is an operation of its HTTP API; its result has the status, the body ' +
  'and the fields of the response. A tool with the argument idempotencyKey can be called again with the same key ' +
  'when its result is lost: it takes effect once.'

export interface Answer { status: number, headers: Record<string, string>, text: string }

/**
 * Answers one message of the Model Context Protocol.
 *
 * @throws ConnectionLost if a fault closed the connection of the request that a tool became
 */
export async function answer (
  request: FastifyRequest, reply: FastifyReply, { tools, errors }: { tools: OperationTool[], errors: object[] }
): Promise<Answer> {
  const { tools: set = 'store' } = request.query as { tools?: ToolSet }
  const offered = tools.filter(({ sets, tool }) =>
    sets.includes(set) && (tool.annotations.readOnlyHint || !request.auth.readOnly))
  let lost: ConnectionLost | undefined
  const noticeLoss = (error: unknown): never => {
    if (error instanceof ConnectionLost) lost = error
    throw error
  }
  const count = async (): Promise<void> => {
    await countMessage(request, reply).catch((error: Error) => {
      throw new ProtocolError(RATE_LIMITED, error.message)
    })
  }
  const handler = createMcpHandler(() => {
    const server = new Server(
      { name: 'petstore', version: packageInfo.version },
      { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS })
    server.setRequestHandler('tools/list', async () => {
      await count()
      return { tools: offered.map(({ tool }) => tool as object as McpTool) }
    })
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {} } }) => {
      const tool = tools.find(({ sets, tool }) => sets.includes(set) && tool.name === name)
      if (tool === undefined) {
        await count()
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${name} at ${request.url}`)
      }
      return await callTool(tool, args, request, count).catch(noticeLoss)
    })
    server.setRequestHandler('resources/list', async () => {
      await count()
      return { resources: RESOURCES }
    })
    server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
      return await readResource(uri, request, errors, count).catch(noticeLoss)
    })
    return server
  })
  const response = await handler.fetch(toWebRequest(request))
  // The response begins before the tool was called.
  const text = await response.text()
  if (lost !== undefined) throw lost
  return { status: response.status, headers: Object.fromEntries(response.headers), text }
}

function toWebRequest ({ headers, body, url }: FastifyRequest): Request {
  const fields = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)])
  return new Request(new URL(url, 'http://localhost'), { method: 'POST', headers: fields, body: body as string })
}
