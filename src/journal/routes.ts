import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ValidationFailed } from '../errors.ts'
import { StreamLimitReached } from '../events/errors.ts'
import { createEventStreams } from '../events/event-stream.ts'
import { lastEventId, sendFollowing, sendStream, sendStreamNotModified } from '../events/stream-responses.ts'
import {
  checkCollectionPreconditions, conditionsOf, isNotModified, STALE_EXAMPLE
} from '../http/conditional-requests.ts'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import { addVary, EVENT_STREAM, preferredType } from '../http/content-negotiation.ts'
import { recordWriteContext } from '../http/idempotency.ts'
import { pageLinks } from '../http/pagination.ts'
import { originOf } from '../http/request-origin.ts'
import { emptyStream, pageEtag, sendPage, sendRecord, sendWriteResult } from '../http/responses.ts'
import { deleteJournal, deleteRequests, putJournal } from './commands.ts'
import { JournalNotFound, RequestNotFound } from './errors.ts'
import { HAR_TYPE, toHar } from './har.ts'
import {
  batchesFrom, batchReader, findJournal, findRequest, isWanted, requestPage, streamRequests, type ReadBatch
} from './queries.ts'
import {
  HttpArchiveSchema, JournalSchema, NewJournalSchema, RecordedRequestSchema, RequestCheckSchema, RequestParams,
  RequestQuery, RequestStreamMessageSchema, RequestVerdictSchema, type RecordedRequest, type RequestCheck,
  type RequestFilters
} from './schemas.ts'
import { judgeRequests, matchesRequest, problemOfCheck, type RequestFacts } from './verdict.ts'

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export function journalRoutes (
  { streamsPerAccount }: { streamsPerAccount: number }
): FastifyPluginAsyncTypebox {
  return async function journalRoutes (app) {
    const { states } = app.lab!
    const recorder = app.recorder!
    const streams = createEventStreams(app.read, app.log, {}, app.clocks, streamRequests)
    app.onChange(({ requests: accounts = [] }) => { accounts.forEach(streams.wake) })
    app.addHook('preClose', async () => { streams.close() })

    app.put('/lab/journal', {
      schema: {
        operationId: 'putJournal',
        ...EXPERIMENTAL,
        summary: 'Turn the journal on',
        description: 'From now on, the journal records every request of the account, except those of the lab. It ' +
          'keeps the newest: as many as `keep` says, and at most 16 MB.',
        body: ref(NewJournalSchema),
        response: { 200: ref(JournalSchema) }
      }
    }, async (request, reply) => {
      const { auth: { account }, body: { keep } } = request
      const input = { account, keep, conditions: conditionsOf(request) }
      const journal = await app.commit(putJournal, input, { account })
      await states.refreshAll(account)
      return sendWriteResult(reply, 200, journal)
    })

    app.get('/lab/journal', {
      schema: {
        operationId: 'getJournal',
        ...EXPERIMENTAL,
        summary: 'Get the journal',
        description: 'Returns how many requests the journal has.',
        response: { 200: ref(JournalSchema) }
      },
      config: { errors: [JournalNotFound] }
    }, async (request, reply) => {
      const { account } = request.auth
      await recorder.recorded(account)
      const journal = await findJournal(app.read, account)
      if (journal === undefined) throw new JournalNotFound()
      return sendRecord(request, reply, journal)
    })

    app.delete('/lab/journal', {
      schema: {
        operationId: 'deleteJournal',
        ...EXPERIMENTAL,
        summary: 'Turn the journal off',
        description: 'Turns the journal off, and deletes its requests.',
        response: { 204: NoContent }
      },
      config: { errors: [JournalNotFound], examples: { 'If-Match': STALE_EXAMPLE } }
    }, async (request, reply) => {
      const { account } = request.auth
      await recorder.recorded(account)
      const input = { account, conditions: conditionsOf(request) }
      const deleted = await app.commit(deleteJournal, input, recordWriteContext(request))
      // What waits belongs to the deleted journal. When the response is repeated, there may be another one.
      if (!deleted.replayed) recorder.forget(account)
      await states.refreshAll(account)
      return sendWriteResult(reply, 204, deleted)
    })

    app.get('/lab/requests', {
      schema: {
        operationId: 'listRequests',
        ...EXPERIMENTAL,
        summary: 'List or follow requests',
        description: 'Lists recorded requests in the order in which their responses ended. With `Accept: ' +
          'text/event-stream` the response stays open and sends new requests, after `Last-Event-ID` or `after`. With ' +
          '`Accept: application/har+json` the page is an HTTP Archive.',
        querystring: RequestQuery,
        response: { 200: arrayOf(RecordedRequestSchema) }
      },
      config: {
        errors: [StreamLimitReached],
        representations: { [EVENT_STREAM]: ref(RequestStreamMessageSchema), [HAR_TYPE]: ref(HttpArchiveSchema) }
      },
      preValidation: async (request) => { lastEventId(request) },
      // The database returns JSON as text.
      serializerCompiler: () => (data) => JSON.stringify(data)
    }, async (request, reply) => {
      const { auth: { account }, query: { after, limit = 20, ...filters } } = request
      const from = lastEventId(request) ?? after
      const type = preferredType(request, ['application/json', EVENT_STREAM, HAR_TYPE])
      addVary(reply, 'Accept')
      if (type === EVENT_STREAM) return await follow(request, reply, from, filters)
      await recorder.recorded(account)
      const { read, charge } = batchesOf(account)
      const page = await requestPage(read, { limit, after: from ?? 0, filters })
      const isArchive = type === HAR_TYPE
      if (isArchive) page.records = archiveOf(page.records, app.publicUrl || originOf(request))
      const sent = sendPage(request, reply, page, { parameter: 'after' })
      if (isArchive && reply.statusCode === 200) reply.header('content-type', HAR_TYPE)
      charge()
      return sent
    })

    app.delete('/lab/requests', {
      schema: {
        operationId: 'deleteRequests',
        ...EXPERIMENTAL,
        summary: 'Delete all recorded requests',
        description: 'Empties the journal, which stays on.',
        response: { 204: NoContent }
      },
      config: { examples: { 'If-Match': STALE_EXAMPLE } }
    }, async (request, reply) => {
      const { account } = request.auth
      await recorder.recorded(account)
      const link = (next: number | bigint | null): string => pageLinks(request, next, 'after')
      const input = { account, conditions: conditionsOf(request), link }
      return sendWriteResult(reply, 204, await app.commit(deleteRequests, input, recordWriteContext(request)))
    })

    app.get('/lab/requests/:requestId', {
      schema: {
        operationId: 'getRequest',
        ...EXPERIMENTAL,
        summary: 'Get a recorded request',
        description: 'Returns one recorded request.',
        params: RequestParams,
        response: { 200: ref(RecordedRequestSchema) }
      },
      config: { errors: [RequestNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { requestId } } = request
      await recorder.recorded(account)
      const recorded = await findRequest(batchesOf(account).read, requestId)
      if (recorded === undefined) throw new RequestNotFound()
      return sendRecord(request, reply, recorded)
    })

    app.post('/lab/requests/verify', {
      schema: {
        operationId: 'verifyRequests',
        ...EXPERIMENTAL,
        summary: 'Check recorded requests',
        description: 'Checks how many requests match, whether they have one Idempotency-Key, how long the client ' +
          'paused before further attempts, and in which order requests came.',
        body: ref(RequestCheckSchema),
        response: { 200: ref(RequestVerdictSchema) }
      },
      config: { readsOnly: true }
    }, async (request, reply) => {
      const { auth: { account }, body: check } = request
      const problem = problemOfCheck(check)
      if (problem !== undefined) throw new ValidationFailed(problem)
      const failed = checkCollectionPreconditions(conditionsOf(request))
      if (failed !== undefined) throw failed
      await recorder.recorded(account)
      const { read, charge } = batchesOf(account, false)
      const verdict = judgeRequests(check, await findMatching(read, check))
      const record = JSON.stringify(verdict)
      charge()
      return sendWriteResult(reply, 200, { record: verdict, etag: pageEtag(record, ''), replayed: false })
    })

    async function follow (
      request: FastifyRequest, reply: FastifyReply, from: number | undefined, filters: RequestFilters
    ): Promise<FastifyReply> {
      const { auth, method } = request
      if (isNotModified(conditionsOf(request))) return sendStreamNotModified(reply)
      if (method === 'HEAD') return sendStream(reply, emptyStream())
      const newest = (await streamRequests(app.read, auth.account, from ?? 0))?.newest ?? 0
      if (streams.countOf(auth.account) >= streamsPerAccount) throw new StreamLimitReached(streamsPerAccount)
      const accepts = Object.keys(filters).length === 0
        ? undefined
        : (facts: object) => isWanted(facts, filters)
      return sendFollowing(reply, (unsentBytes) =>
        streams.follow(auth, Math.min(from ?? 0, newest), unsentBytes, accepts))
    }

    /**
     * Returns a function that reads the batches of a journal, one after the other, and one to call at the end. A search
     * or an archive takes milliseconds after each read, for which the account pays.
     */
    function batchesOf (account: number, texts = true): { read: ReadBatch, charge: () => void } {
      const readBatch = batchReader(app.read, account, texts)
      let began = performance.now()
      const charge = (): void => { app.admission.charge(account, began) }
      const read: ReadBatch = async (id) => {
        charge()
        const row = await readBatch(id)
        began = performance.now()
        return row
      }
      return { read, charge }
    }

    /** Returns the requests that a check is about, in order of arrival. */
    async function findMatching (read: ReadBatch, { match }: RequestCheck): Promise<RequestFacts[]> {
      const matching: RequestFacts[] = []
      for await (const { facts } of batchesFrom(read, 1)) {
        matching.push(...facts.filter((request) => matchesRequest(request, match)))
      }
      return matching.sort((a, b) => a.startedMs - b.startedMs || a.id - b.id)
    }
  }
}

/** Returns a page of requests as an archive, in JSON. */
function archiveOf (records: string, address: string): string {
  return JSON.stringify(toHar(JSON.parse(records) as RecordedRequest[], address))
}
