import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { conditionsOf } from '../http/conditional-requests.ts'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import { recordWriteContext, writeContext } from '../http/idempotency.ts'
import { pageRequest } from '../http/pagination.ts'
import { sendFound } from '../http/record-routes.ts'
import { sendPage, sendWriteResult } from '../http/responses.ts'
import { SnapshotLimitReached, SnapshotNotFound, SnapshotTooLarge, StoreTooLarge } from './errors.ts'
import { findSnapshot, listSnapshots } from './queries.ts'
import { resetStore } from './reset-command.ts'
import {
  LabQuery, NewSnapshotSchema, ResetStoreSchema, SnapshotParams, SnapshotSchema, NewStoreResetSchema
} from './schemas.ts'
import { createSnapshot, deleteSnapshot, restoreSnapshot } from './snapshot-commands.ts'
import { dropDeliveries } from './store-rows.ts'

/** The snapshot that the example of createSnapshot takes of the demo store, which has one. */
const CREATED = 2

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export const snapshotRoutes: FastifyPluginAsyncTypebox = async function snapshotRoutes (app) {
  // The document has the reset first: a tool that sends all examples ends with the restored store, not with a sample.
  app.post('/lab/reset', {
    schema: {
      operationId: 'resetStore',
      ...EXPERIMENTAL,
      summary: 'Reset the store',
      description: 'Empties the store and, with `sample`, fills it. The same seed gives the same records, in the ' +
        'same order. Writes one event `store.replaced`.',
      body: ref(NewStoreResetSchema),
      response: { 200: ref(ResetStoreSchema) }
    },
    config: { errors: [StoreTooLarge] }
  }, async (request, reply) => {
    const { auth: { account }, body: reset } = request
    const done = await app.commit(resetStore, { account, reset }, writeContext(request))
    await dropDeliveries(app.commit, account)
    return sendWriteResult(reply, 200, done)
  })

  app.get('/lab/snapshots', {
    schema: {
      operationId: 'listSnapshots',
      ...EXPERIMENTAL,
      summary: 'List snapshots',
      description: 'Lists the snapshots of the account by id, a page at a time.',
      querystring: LabQuery,
      response: { 200: arrayOf(SnapshotSchema) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    return sendPage(request, reply, await listSnapshots(app.read, account, pageRequest(query)))
  })

  app.post('/lab/snapshots', {
    schema: {
      operationId: 'createSnapshot',
      ...EXPERIMENTAL,
      summary: 'Take a snapshot',
      description: 'Copies the records of the store, up to 10,000. An account can have 20 snapshots.',
      body: ref(NewSnapshotSchema),
      response: { 201: ref(SnapshotSchema) }
    },
    config: { errors: [SnapshotLimitReached, SnapshotTooLarge] }
  }, async (request, reply) => {
    const { auth: { account }, body: snapshot } = request
    const taken = await app.commit(createSnapshot, { account, snapshot }, writeContext(request))
    return sendWriteResult(reply, 201, taken, `/lab/snapshots/${taken.record.id}`)
  })

  app.get('/lab/snapshots/:snapshotId', {
    schema: {
      operationId: 'getSnapshot',
      ...EXPERIMENTAL,
      summary: 'Get a snapshot',
      description: 'Returns one snapshot.',
      params: SnapshotParams,
      response: { 200: ref(SnapshotSchema) }
    },
    config: { errors: [SnapshotNotFound] }
  }, async (request, reply) =>
    await sendFound(request, reply, findSnapshot, request.params.snapshotId, SnapshotNotFound))

  app.delete('/lab/snapshots/:snapshotId', {
    schema: {
      operationId: 'deleteSnapshot',
      ...EXPERIMENTAL,
      summary: 'Delete a snapshot',
      description: 'Deletes a snapshot. The store does not change.',
      params: SnapshotParams,
      response: { 204: NoContent }
    },
    config: { errors: [SnapshotNotFound], examples: { snapshotId: CREATED } }
  }, async (request, reply) => {
    const { auth: { account }, params: { snapshotId } } = request
    const input = { account, snapshotId, conditions: conditionsOf(request) }
    return sendWriteResult(reply, 204, await app.commit(deleteSnapshot, input, writeContext(request)))
  })

  app.post('/lab/snapshots/:snapshotId/restore', {
    schema: {
      operationId: 'restoreSnapshot',
      ...EXPERIMENTAL,
      summary: 'Restore a snapshot',
      description: 'Restores the store as it was, with the same ids, values and ETags. ' +
        'API keys, webhooks, faults, the clock and idempotency keys stay as they are. Writes one event ' +
        '`store.replaced`. A message that was delivered or failed after the snapshot keeps that status.',
      params: SnapshotParams,
      response: { 200: ref(SnapshotSchema) }
    },
    config: { errors: [SnapshotNotFound, StoreTooLarge] }
  }, async (request, reply) => {
    const { auth: { account }, params: { snapshotId } } = request
    const input = { account, snapshotId, conditions: conditionsOf(request) }
    const restored = await app.commit(restoreSnapshot, input, recordWriteContext(request))
    await dropDeliveries(app.commit, account)
    return sendWriteResult(reply, 200, restored)
  })
}
