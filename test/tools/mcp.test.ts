import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { startApp } from '../support/app.ts'
import { ROOT } from '../support/cli.ts'
import { stocked } from '../support/fixtures.ts'

// The official client of the Model Context Protocol, and its suite of conformance tests, against POST /mcp.

const CONFORMANCE = join(ROOT, 'test/tools/node_modules/@modelcontextprotocol/conformance/dist/index.js')

/**
 * The scenarios that need no tools, prompts and resources of the suite's own, such as a tool that returns an image,
 * and no sessions, which this server does not have.
 */
const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'resources-list', 'dns-rebinding-protection']

t.test('the official client lists and calls tools, and reads resources', async (t) => {
  const { port, openAccount } = await startApp(t)
  const ada = await openAccount()
  const petId = await stocked(ada, 3)
  const client = new Client({ name: 'petstore-tests', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${ada.key}` } }
  }))
  t.teardown(async () => { await client.close() })
  const { tools } = await client.listTools()
  t.equal(tools.length, 12)
  const placed = await client.callTool({ name: 'placeOrder', arguments: { body: { petId }, idempotencyKey: 'a' } })
  t.match(placed, { structuredContent: { status: 201, body: { petId } } })
  t.match(await client.callTool({ name: 'placeOrder', arguments: { body: { petId, quantity: 9 } } }), {
    isError: true, structuredContent: { status: 409, code: String }
  })
  const { resources } = await client.listResources()
  t.equal(resources.length, 3)
  const { contents: [content] } = await client.readResource({ uri: 'petstore://errors' })
  t.ok(JSON.parse((content as { text: string }).text).length > 20)
  await t.rejects(client.callTool({ name: 'nothing', arguments: {} }), { message: /no tool nothing/ })
})

t.test('the conformance suite finds no fault', async (t) => {
  const { port, openAccount } = await startApp(t)
  const { key } = await openAccount()
  const url = await withKey(t, port, key!)
  for (const scenario of SCENARIOS) {
    const program = [CONFORMANCE, 'server', '--url', url, '--scenario', scenario]
    const { stdout } = await promisify(execFile)(process.execPath, program).catch((error: unknown) =>
      ({ stdout: String((error as { stdout: string }).stdout) }))
    t.match(stdout, /Passed: [1-9]\d*\/\d+, 0 failed/, `${scenario}: ${stdout}`)
  }
})

/** Starts a proxy that adds an API key, which the suite cannot send. @returns the URL of its `/mcp` */
async function withKey (t: Test, port: number, key: string): Promise<string> {
  const proxy = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming
    const options = { host: '127.0.0.1', port, method, path, headers: { ...headers, authorization: `Bearer ${key}` } }
    incoming.pipe(httpRequest(options, (response) => {
      outgoing.writeHead(response.statusCode!, response.headers)
      response.pipe(outgoing)
    }))
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => { proxy.closeAllConnections(); proxy.close() })
  return `http://localhost:${(proxy.address() as AddressInfo).port}/mcp`
}
