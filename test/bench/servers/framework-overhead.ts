// `floor`: petstore's framework (key check, log, headers) around a constant answer. It answers at the end of the turn
// of the event loop, as petstore answers the reads of a crowd: answers that follow each other find the client awake,
// and cost a third less than answers that each wake it.

import type * as PublicApi from '../../../src/public-api.ts'

// The compiled files, as petstore runs them.
const compiled = new URL('../../../dist/public-api.js', import.meta.url)
const { buildApp, readConfig } = await import(compiled.href) as typeof PublicApi

const config = readConfig(process.env)
const app = await buildApp(config)

const PET = '{"id":1,"name":"Rex 1","categoryId":2,"status":"available"}'
const LINK = '</pets?limit=20&cursor=l>; rel="next", </pets?limit=20>; rel="first"'

/** The answers by method and route, with as many headers as petstore's and a body of the same length. */
const ANSWERS: Record<string, { status: number, headers: Record<string, string>, body: string }> = {
  'GET /pets/:petId': {
    status: 200,
    headers: {
      deprecation: '@1764892800',
      sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
      link: '</pets?id=1>; rel="successor-version"',
      etag: '"1"'
    },
    body: PET
  },
  'GET /pets': {
    status: 200,
    headers: { link: LINK, etag: '"oaLtVfOmWCvnA-TOYR6EK0a9IQk"' },
    body: `[${Array.from({ length: 20 }, () => PET).join(',')}]`
  },
  'POST /pets': { status: 201, headers: { location: '/pets/1', etag: '"1"' }, body: PET },
  'PATCH /pets/:petId': { status: 200, headers: { etag: '"1"' }, body: PET },
  'DELETE /store/orders/:orderId': { status: 204, headers: {}, body: '' },
  'POST /store/orders': {
    status: 201,
    headers: { location: '/store/orders/1', etag: '"1"' },
    body: '{"id":1,"petId":1,"quantity":1,"complete":false}'
  },
  'POST /messages': {
    status: 201,
    headers: { location: '/messages/msg_00000000014jm1zq7c8x0v2ykp', etag: '"1"' },
    body: '{"id":"msg_00000000014jm1zq7c8x0v2ykp","message":"Hello","status":"queued",' +
      '"createdAt":"2026-11-21T10:00:00.000Z"}'
  }
}

// This is the last hook before validation, after all work that petstore does for every request.
app.addHook('preValidation', async ({ method, routeOptions }, reply) => {
  await new Promise((resolve) => { setImmediate(resolve) })
  const { status, headers, body } = ANSWERS[`${method} ${routeOptions.url}`]!
  if (status === 204) return await reply.code(status).send()
  return await reply.code(status).headers(headers).header('content-type', 'application/json; charset=utf-8').send(body)
})

process.on('SIGTERM', () => {
  void app.close().finally(() => { process.exit() })
})
await app.listen({ port: config.PORT, host: config.HOST })
