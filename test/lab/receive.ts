import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { Client, TestApp } from '../support/app.ts'

export interface Received {
  status: number
  /** The Content-Length. */
  promised: number | undefined
  whole: boolean
  ms: number
  headers: IncomingHttpHeaders
  fault: string | undefined
  text: string
}

/** Sends a request on a connection of its own, and returns what arrives. @returns `undefined` without a byte */
export async function receive (
  { port }: TestApp, { key }: Client, method: string, path: string, body?: object, headers: Record<string, string> = {}
): Promise<Received | undefined> {
  const began = performance.now()
  return await new Promise((resolve) => {
    const fields = { authorization: `Bearer ${key}`, ...body && { 'content-type': 'application/json' }, ...headers }
    const asked = httpRequest({ port, host: '127.0.0.1', method, path, agent: false, headers: fields }, (response) => {
      const chunks: Buffer[] = []
      const length = response.headers['content-length']
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {})
      response.on('close', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({
          status: response.statusCode!,
          promised: length === undefined ? undefined : Number(length),
          whole: response.complete,
          ms: performance.now() - began,
          headers: response.headers,
          fault: response.headers['petstore-fault'] as string | undefined,
          text
        })
      })
    })
    asked.on('error', () => { resolve(undefined) })
    asked.end(body && JSON.stringify(body))
  })
}

/** Returns the types of an account's first 100 events. */
export async function eventTypes (client: Client): Promise<string[]> {
  return (await client.get('/events?limit=100')).body.map(({ type }: { type: string }) => type)
}
