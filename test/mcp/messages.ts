import type { Client } from '../support/app.ts'

/** A response of `POST /mcp`. */
export interface McpAnswer {
  status: number
  // Tests read members of messages of every shape.
  body: any
}

/** Sends a message, or a text in its place, as an account. Without sessions, no `initialize` comes first. */
export async function sendMessage (
  port: number, { key }: Client, message: object | string, headers: Record<string, string> = {}, path = '/mcp',
  signal?: AbortSignal
): Promise<McpAnswer> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...key === undefined ? {} : { authorization: `Bearer ${key}` },
      ...headers
    },
    body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    ...signal && { signal }
  })
  const text = await response.text()
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? []
  return { status: response.status, body: data === '' ? undefined : JSON.parse(data) }
}

/** Calls a tool. @returns its result */
export async function callTool (
  port: number, client: Client, name: string, args: object = {}, signal?: AbortSignal
): Promise<any> {
  const message = { method: 'tools/call', params: { name, arguments: args } }
  const { body } = await sendMessage(port, client, message, {}, '/mcp', signal)
  return body.result
}
