import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { sendChanged, sendList } from '../http/record-routes.ts'
import { locationOf, sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { InvalidStatusTransition, OperationSunset, PetInUse, PetNotFound } from './errors.ts'
import { UnknownCategory } from '../categories/errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import { NewPetSchema, PetParams, PetUpdateSchema, PetQuery, PetSchema, PetsSchema } from './schemas.ts'
import { createPet, deletePet, updatePet } from './commands.ts'
import { findPet, listPets } from './queries.ts'

/** 2025-12-05T00:00:00Z, the time of the deprecation, in the format of RFC 9745. */
const DEPRECATION = '@1764892800'

export interface PetOptions {
  /** Date from which the operation that reads a single pet answers 410, such as 2030-12-05. */
  sunset: string
}

export function petRoutes ({ sunset }: PetOptions): FastifyPluginAsyncTypebox {
  return async function petRoutes (app) {
    const sunsetTime = new Date(`${sunset}T00:00:00Z`)
    const sunsetField = sunsetTime.toUTCString()
    const isAfterSunset = (account: number, time = app.clocks.now(account)): boolean => time >= sunsetTime.getTime()

    app.get('/pets', {
      schema: {
        operationId: 'listPets',
        summary: 'List pets',
        description: 'Lists pets by id, a page at a time. A pet must match all filters. If the only parameter is one ' +
          '`id`, the response has the ETag of that pet.',
        querystring: PetQuery,
        response: { 200: ref(PetsSchema) }
      }
    }, async (request, reply) => {
      const { auth: { account }, query: { id = [], ...others } } = request
      if (id.length === 1 && Object.keys(others).length === 0) {
        const pet = await findPet(app.read, account, id[0]!)
        return sendPage(request, reply, { records: `[${pet?.record ?? ''}]`, next: null }, { tag: pet?.etag })
      }
      return await sendList(request, reply, listPets)
    })

    app.post('/pets', {
      schema: {
        operationId: 'createPet',
        summary: 'Add a pet',
        description: 'Adds a pet to the store. Its category must exist. Count its stock with ' +
          '`PATCH /inventory/{petId}`.',
        body: ref(NewPetSchema),
        response: { 201: ref(PetSchema) }
      },
      config: { errors: [UnknownCategory] }
    }, async (request, reply) => {
      const { auth: { account }, body: pet } = request
      const created = await app.commit(createPet, { pet }, writeContext(request))
      const { record: { id }, firstAt } = created
      return sendWriteResult(reply, 201, created, isAfterSunset(account, firstAt) ? `/pets?id=${id}` : `/pets/${id}`)
    })

    app.get('/pets/:petId', {
      schema: {
        operationId: 'getPet',
        summary: 'Get a pet',
        description: 'Deprecated: use `GET /pets?id={petId}` instead. It returns a list with this one pet and the ' +
          `same ETag. From ${sunset} on, this operation returns 410.`,
        deprecated: true,
        'x-deprecated-sunset': sunset,
        'x-sunset': sunset,
        params: PetParams,
        response: { 200: ref(PetSchema) }
      },
      config: { errors: [OperationSunset, PetNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { petId } } = request
      reply.header('deprecation', DEPRECATION).header('sunset', sunsetField)
      reply.header('link', `<${locationOf(app, `/pets?id=${asAsked(petId, request.url)}`)}>; rel="successor-version"`)
      if (isAfterSunset(account)) throw new OperationSunset(sunset)
      const pet = await findPet(app.read, account, petId)
      if (pet === undefined) throw new PetNotFound()
      return sendRecord(request, reply, pet)
    })

    app.patch('/pets/:petId', {
      schema: {
        operationId: 'updatePet',
        summary: 'Change a pet',
        description: 'A JSON merge patch. You can change the status from `available` to `pending` or `sold`, from ' +
          '`pending` to `sold`, and from `pending` to `available` unless the stock is 0.',
        params: PetParams,
        body: ref(PetUpdateSchema),
        response: { 200: ref(PetSchema) }
      },
      config: { errors: [PetNotFound, InvalidStatusTransition, UnknownCategory] }
    }, async (request, reply) =>
      await sendChanged(request, reply, updatePet, { patch: request.body, ...request.params }))

    app.delete('/pets/:petId', {
      schema: {
        operationId: 'deletePet',
        summary: 'Delete a pet',
        description: 'Deletes a pet that has no orders, and its inventory entry with its units.',
        params: PetParams,
        response: { 204: NoContent }
      },
      config: { errors: [PetNotFound, PetInUse], examples: { petId: 20 } }
    }, async (request, reply) => await sendChanged(request, reply, deletePet, request.params))
  }
}

/**
 * Returns the id as the client wrote it. An unsafe integer, which the service never assigns, would become another
 * number in JavaScript.
 */
function asAsked (id: number, url: string): number | string {
  return Number.isSafeInteger(id) ? id : decodeURIComponent(url.split('?')[0]!.split('/').at(-1)!)
}
