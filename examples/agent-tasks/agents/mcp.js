// What the scripted agents know of MCP: a call of a tool is one request.
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** Returns a function that calls a tool. Its result has `status`, `body` and `fields`; it throws if none came. */
export function connect ({ mcpUrl, apiKey }) {
  return async (name, args = {}) => {
    const call = { jsonrpc: '2.0', id: randomUUID(), method: 'tools/call', params: { name, arguments: args } }
    const response = await fetch(mcpUrl, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${apiKey}`,
        Accept: 'application/json, text/event-stream',
        'Content-Type': 'application/json',
        'MCP-Protocol-Version': '2025-06-18'
      },
      body: JSON.stringify(call)
    })
    // A server may answer with JSON, or with a stream of one event.
    const body = await response.text()
    const { result, error } = JSON.parse(/^data: *(.*)$/m.exec(body)?.[1] ?? body)
    if (error !== undefined) throw new Error(`${name}: ${error.message}`)
    return result.structuredContent
  }
}

/** Runs a scripted agent as run.js starts agents, if its file is the program. */
export async function main (agent, fileUrl) {
  if (realpathSync(process.argv[1]) !== fileURLToPath(fileUrl)) return
  const { PETSTORE_MCP_URL: mcpUrl, PETSTORE_API_KEY: apiKey } = process.env
  const tools = { callTool: connect({ mcpUrl, apiKey }), wait: async (seconds) => await sleep(seconds * 1000) }
  console.log(await agent(await text(process.stdin), tools))
}

/** Reads a list to its end. @param call calls a tool */
export async function readAll (call, name, args = {}) {
  const { body, fields = {} } = await call(name, args)
  const [, cursor] = /<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(fields.link ?? '') ?? []
  return cursor === undefined ? body : [...body, ...await readAll(call, name, { ...args, cursor })]
}
