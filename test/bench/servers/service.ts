import { hash as digest, randomBytes } from 'node:crypto'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import Fastify, { LogController, type FastifyReply, type FastifyRequest } from 'fastify'
import { pino } from 'pino'
import { idempotencyOf, versionsOf } from './conditions.ts'
import { petNotFound, Refusal } from './refusals.ts'
import {
  Message, NewMessage, NewOrder, NewPet, Order, OrderParams, Pet, PetParams, PetQuery, PetUpdate, Problem
} from './schemas.ts'
import { Replay, type Key, type Store, type Written } from './store.ts'

/**
 * The measured routes as a good engineer writes them by hand: Fastify, TypeBox for requests and answers, a bearer key
 * check, one call of the store per request. The answers equal petstore's in every header.
 */

declare module 'fastify' {
  interface FastifyRequest { key: Key | undefined }
}

/** The headers of every answer of petstore. */
const SECURITY = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'private, no-cache'
}

/** How long a key stays valid without a look-up, in ms, and the number of cached keys. */
const KEY_MS = 4_000
const KEYS = 50_000
const HOUR_MS = 3_600_000

/** The delay of the delivery of pending messages in ms, and their number in one transaction, as in petstore. */
const SETTLE_MS = 25
const SETTLE_SIZE = 1_000

/** Serves the store on PORT until SIGTERM. */
export async function serve (store: Store): Promise<void> {
  const origin = randomBytes(9).toString('base64url')
  let requests = 0
  const app = Fastify({
    loggerInstance: pino(pino.destination({ sync: false, minLength: 16_000, periodicFlush: 100 })),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: ({ headers }) => {
      const own = headers['request-id']
      return typeof own === 'string' && /^[A-Za-z0-9._~:-]{1,128}$/.test(own)
        ? own
        : `${origin}-${(requests++).toString(36)}`
    },
    ajv: { customOptions: { removeAdditional: false } }
  }).withTypeProvider<TypeBoxTypeProvider>()

  const keys = new Map<string, { key: Key, since: number }>()

  async function lookUp (authorization: string, now: number): Promise<Key | undefined> {
    const [, credential] = /^bearer (psk_[0-9A-Za-z_]+)$/i.exec(authorization) ?? []
    const key = credential === undefined ? undefined : await store.findKey(digest('sha256', credential, 'hex'))
    if (key === undefined || (key.expiresAt !== null && now >= Date.parse(key.expiresAt))) return undefined
    if (keys.size >= KEYS) keys.clear()
    keys.set(authorization, { key, since: now })
    const hour = Math.floor(now / HOUR_MS) * HOUR_MS
    if (key.lastUsedAt === null || Date.parse(key.lastUsedAt) < hour) {
      await store.markKeyUsed(key.key, new Date(hour).toISOString())
    }
    return key
  }

  app.decorateRequest('key')
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY).header('request-id', request.id)
    const { authorization = '' } = request.headers
    const known = keys.get(authorization)
    const now = Date.now()
    if (known !== undefined && now - known.since < KEY_MS) return admit(known.key, request, reply, done)
    lookUp(authorization, now).then((key) => { admit(key, request, reply, done) }, done)
  })
  app.addHook('onResponse', ({ log, method, routeOptions }, reply, done) => {
    log.info(
      { method, route: routeOptions.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 100) / 100 },
      'request'
    )
    done()
  })

  app.get(
    '/pets/:petId',
    { schema: { params: PetParams, response: { 200: Pet, 404: Problem } } },
    async (request, reply) => {
      const { petId } = request.params
      reply
        .header('deprecation', '@1764892800')
        .header('sunset', 'Thu, 05 Dec 2030 00:00:00 GMT')
        .header('link', `</pets?id=${petId}>; rel="successor-version"`)
      const pet = await store.findPet(accountOf(request), petId)
      if (pet === undefined) return refuse(reply, petNotFound)
      reply.header('etag', `"${pet.version}"`)
      return pet
    }
  )

  app.get(
    '/pets',
    { schema: { querystring: PetQuery, response: { 200: Type.Array(Pet) } } },
    async (request, reply) => {
      const { status, limit = 20, cursor } = request.query
      const pets = await store.listPets(
        accountOf(request),
        cursor === undefined ? 0 : parseInt(cursor, 36),
        limit + 1,
        status
      )
      const first = `/pets?${status === undefined ? '' : `status=${status}&`}limit=${limit}`
      let link = `<${first}>; rel="first"`
      if (pets.length > limit) {
        pets.pop()
        link = `<${first}&cursor=${pets[limit - 1]!.id.toString(36)}>; rel="next", ${link}`
      }
      const text = reply.serialize(pets)
      reply
        .header('link', link)
        .header('etag', `"${digest('sha1', text + link, 'base64url')}"`)
        .header('content-type', 'application/json; charset=utf-8')
      return text as never
    }
  )

  app.post('/pets', { schema: { body: NewPet, response: { 201: Pet } } }, async (request, reply) => {
    const pet = await store.createPet(accountOf(request), request.body, idempotencyOf(request))
    return answer(reply, pet, '/pets')
  })

  app.post('/store/orders', { schema: { body: NewOrder, response: { 201: Order } } }, async (request, reply) => {
    const order = await store.placeOrder(accountOf(request), request.body, idempotencyOf(request))
    return answer(reply, order, '/store/orders')
  })

  app.patch(
    '/pets/:petId',
    { schema: { params: PetParams, body: PetUpdate, response: { 200: Pet } } },
    async (request, reply) => {
      const { params: { petId }, body: { name } } = request
      const pet = await store.renamePet(accountOf(request), petId, name, versionsOf(request))
      if (pet instanceof Refusal) return refuse(reply, pet)
      reply.header('etag', `"${pet.version}"`)
      return pet
    }
  )

  app.delete('/store/orders/:orderId', { schema: { params: OrderParams } }, async (request, reply) => {
    const refusal = await store.cancelOrder(accountOf(request), request.params.orderId)
    return refusal === undefined ? await reply.code(204).send() : refuse(reply, refusal)
  })

  app.post('/messages', { schema: { body: NewMessage, response: { 201: Message } } }, async (request, reply) => {
    const message = await store.createMessage(accountOf(request), request.body.message)
    settleSoon()
    return answer(reply, message, '/messages')
  })

  let settling = false
  function settleSoon (): void {
    if (settling) return
    settling = true
    setTimeout(() => {
      settle().catch((error: unknown) => { app.log.error(error) })
    }, SETTLE_MS)
  }

  async function settle (): Promise<void> {
    // Messages that arrive from now on schedule the next delivery.
    settling = false
    while (await store.settleMessages(SETTLE_SIZE) === SETTLE_SIZE) continue
  }

  process.on('SIGTERM', () => {
    void app.close().then(async () => { await store.close() }).finally(() => { process.exit() })
  })
  await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' })
}

function admit (key: Key | undefined, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  if (key === undefined) {
    reply.code(401).header('www-authenticate', 'Bearer realm="petstore"').send(problem('unauthorized', 401))
  } else if (key.readOnly && request.method !== 'GET') {
    reply.code(403).send(problem('read_only_key', 403))
  } else {
    request.key = key
    done()
  }
}

function accountOf ({ key }: FastifyRequest): number {
  return key!.account
}

function answer<Record extends { id: number | string }> (
  reply: FastifyReply,
  written: Written<Record>,
  path: string
): never {
  if (written instanceof Refusal) return refuse(reply, written)
  const isReplay = written instanceof Replay
  const record = isReplay ? written.record : written
  if (isReplay) reply.header('idempotency-replayed', 'true')
  return reply.code(201).header('etag', '"1"').header('location', `${path}/${record.id}`).send(record) as never
}

function refuse (reply: FastifyReply, { status, body }: Refusal): never {
  return reply.code(status).header('cache-control', 'no-store').send(body) as never
}

function problem (code: string, status: number): { code: string, message: string, status: number } {
  return { code, message: code, status }
}
