import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ref } from '../http/common-schemas.ts'
import { pageEtag, sendRecord } from '../http/responses.ts'
import { NDJSON } from '../http/json-text.ts'
import { SnapshotNotFound, StoreTooLarge } from './errors.ts'
import { findSnapshot, SNAPSHOT_ETAG } from './queries.ts'
import { SnapshotDiffSchema, SnapshotParams, StoreStateSchema } from './schemas.ts'
import { diffSince } from './snapshot-diff.ts'
import { Lines, linesOfSnapshot } from './store-file.ts'
import { stateOf } from './store-state.ts'

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export const stateRoutes: FastifyPluginAsyncTypebox = async function stateRoutes (app) {
  app.get('/lab/state', {
    schema: {
      operationId: 'getState',
      ...EXPERIMENTAL,
      summary: 'Get the state of the store',
      description: 'Returns hashes of the store, to compare it with another one or with itself later. The store can ' +
        'have up to 10,000 records.',
      response: { 200: ref(StoreStateSchema) }
    },
    config: { errors: [StoreTooLarge] }
  }, async (request, reply) => {
    const { auth: { account } } = request
    const state = await app.readView(account, async (read) => await stateOf(read, account))
    return sendRecord(request, reply, { record: JSON.stringify(state), etag: `"${state.hash}"` })
  })

  app.get('/lab/snapshots/:snapshotId/diff', {
    schema: {
      operationId: 'getSnapshotDiff',
      ...EXPERIMENTAL,
      summary: 'Compare the store with a snapshot',
      description: 'Returns the records that were created, changed or deleted since the snapshot, up to 8 MB.',
      params: SnapshotParams,
      response: { 200: ref(SnapshotDiffSchema) }
    },
    config: { errors: [SnapshotNotFound, StoreTooLarge] }
  }, async (request, reply) => {
    const { auth: { account }, params: { snapshotId } } = request
    const record = await app.readView(account, async (read) => {
      if (await findSnapshot(read, account, snapshotId) === undefined) throw new SnapshotNotFound()
      return await diffSince(read, account, snapshotId)
    })
    return sendRecord(request, reply, { record, etag: pageEtag(record) })
  })

  app.get('/lab/snapshots/:snapshotId/rows', {
    schema: {
      operationId: 'getSnapshotRows',
      ...EXPERIMENTAL,
      summary: 'Export a snapshot',
      description: 'Returns the records of the snapshot, each as a line of JSON (`StoreRow`). `importSnapshot` ' +
        'accepts them, also on another service.',
      params: SnapshotParams,
      response: { 200: { description: 'A record in each line.', content: { [NDJSON]: { schema: Lines } } } }
    },
    config: { errors: [SnapshotNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { snapshotId } } = request
    const record = await app.readView(account, async (read) => {
      if (await findSnapshot(read, account, snapshotId) === undefined) throw new SnapshotNotFound()
      return await linesOfSnapshot(read, account, snapshotId)
    })
    return sendRecord(request, reply, { record, etag: SNAPSHOT_ETAG }, NDJSON)
  })
}
