import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Overloaded } from '../errors.ts'
import { ref } from '../http/common-schemas.ts'
import { writeContext } from '../http/idempotency.ts'
import { sendWriteResult } from '../http/responses.ts'
import { NDJSON } from '../http/json-text.ts'
import { SnapshotLimitReached, SnapshotTooLarge } from './errors.ts'
import { validateLines } from './file-rows.ts'
import { createHeldBytes, releaseAfter, type RunStep } from './held-bytes.ts'
import { importSnapshot } from './import-command.ts'
import { MAX_IMPORT_BYTES } from './import-store.ts'
import { relateRows } from './imported-store.ts'
import { SnapshotSchema } from './schemas.ts'
import { FileLines, Lines, parseLines } from './store-file.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Runs a step of an import. The memory of its file is held until then. */
    runStep: RunStep | undefined
  }
}

/** A file takes some four times its size until it is saved: those of a process take at most 128 MB. */
const LIMITS = { account: MAX_IMPORT_BYTES, process: 4 * MAX_IMPORT_BYTES }

export const importRoutes: FastifyPluginAsyncTypebox = async function importRoutes (app) {
  const held = createHeldBytes(LIMITS)
  app.decorateRequest('runStep', undefined)

  app.addContentTypeParser<Buffer>(NDJSON, { parseAs: 'buffer', bodyLimit: MAX_IMPORT_BYTES }, async (
    { auth: { account }, runStep }: FastifyRequest, body: Buffer
  ) => await runStep!(async () => {
    await app.admission.admitBody(account, body.length)
    return await parseLines(body, (began) => { app.admission.charge(account, began) })
  }))

  app.post('/lab/snapshots/import', {
    bodyLimit: MAX_IMPORT_BYTES,
    schema: {
      operationId: 'importSnapshot',
      tags: ['lab'],
      'x-stability': 'experimental',
      summary: 'Import a snapshot',
      description: 'Saves the records of a file as a snapshot, all or none: lines as `getSnapshotRows` returns them, ' +
        'up to 8 MB and 10,000 records. The records get new ids and keep their relations. The store changes when you ' +
        'restore the snapshot.',
      body: { content: { [NDJSON]: { schema: Lines } } },
      response: { 201: ref(SnapshotSchema) }
    },
    // The lines are validated below, some in each turn of the event loop.
    validatorCompiler: (part) => part.httpPart === 'body' ? () => true : app.validatorCompiler!(part),
    config: { errors: [SnapshotLimitReached, SnapshotTooLarge], hasLines: true, collection: '/lab/snapshots' },
    // Before the body is read, of which the service keeps the whole in memory.
    onRequest: (request, reply, done) => {
      const { headers: { 'content-length': length }, auth: { account } } = request
      const release = held.reserve(account, Math.min(Number(length ?? MAX_IMPORT_BYTES), MAX_IMPORT_BYTES))
      if (release === undefined) throw new Overloaded()
      request.runStep = releaseAfter(reply.raw, release)
      done()
    }
  }, async (request, reply) => await request.runStep!(async () => {
    const { auth: { account } } = request
    const { values } = request.body as FileLines
    const store = relateRows(await validateLines(values))
    const saved = await app.commit(importSnapshot, { account, store }, writeContext(request))
    return sendWriteResult(reply, 201, saved, `/lab/snapshots/${saved.record.id}`)
  }))
}
