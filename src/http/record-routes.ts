import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AccountRows } from '../database/unit-of-work/account-rows.ts'
import type { Write } from '../database/unit-of-work/write.ts'
import { etagOf } from '../database/record.ts'
import type { FindRecord, ListRecords } from '../database/sql/record-queries.ts'
import type { Table } from '../database/table.ts'
import type { ErrorClass } from '../errors.ts'
import { conditionsOf, requirePreconditions, type Conditions } from './conditional-requests.ts'
import { recordWriteContext, writeContext } from './idempotency.ts'
import { pageRequest, type PageQuery } from './pagination.ts'
import { sendPage, sendRecord, sendWriteResult } from './responses.ts'

/** What the operations of most resources do, each for one request. */

/** Sends a page of a list. All parameters of the query but those of paging are filters. */
export async function sendList (
  request: FastifyRequest, reply: FastifyReply, list: ListRecords
): Promise<FastifyReply> {
  const { server, auth: { account }, query } = request
  return sendPage(request, reply, await list(server.read, account, pageRequest(query as PageQuery)))
}

/** Sends a record of the account. @throws NotFound if it has no such record */
export async function sendFound<Id> (
  request: FastifyRequest, reply: FastifyReply, find: FindRecord<Id>, id: Id, NotFound: ErrorClass
): Promise<FastifyReply> {
  const { server, auth: { account } } = request
  const record = await find(server.read, account, id)
  if (record === undefined) throw new NotFound()
  return sendRecord(request, reply, record)
}

/** Creates a record, and sends it with its address: that of the collection, and its id. */
export async function sendCreated<Input, Record extends { id?: number | string }> (
  request: FastifyRequest, reply: FastifyReply, write: Write<Input, Record>, input: Input
): Promise<FastifyReply> {
  const { server, routeOptions: { url } } = request
  const created = await server.commit(write, input, writeContext(request))
  return sendWriteResult(reply, 201, created, `${url!.slice(server.basePath.length)}/${created.record.id}`)
}

/** Changes a record under the preconditions of the request, and sends it, if it is still there. */
export async function sendChanged<Input> (
  request: FastifyRequest, reply: FastifyReply, write: Write<Input & { conditions: Conditions }, unknown>, input: Input
): Promise<FastifyReply> {
  // Behind a spread, each further member takes Node 20 a microsecond.
  const changed = await request.server.commit(
    write, { conditions: conditionsOf(request), ...input }, recordWriteContext(request))
  return sendWriteResult(reply, changed.record === undefined ? 204 : 200, changed)
}

/** What names the record that a request changes: the id in its path, and its preconditions. */
export type RecordRef<Parameter extends string> = Record<Parameter, number> & { conditions: Conditions }

/**
 * Returns the row that a request names, for a write that needs it.
 *
 * @throws NotFound if the account has no such row, PreconditionFailed
 */
export function requireRow<Row extends { version: number }> (
  rows: AccountRows, table: Table<Row>, id: number, NotFound: ErrorClass, conditions: Conditions
): Readonly<Row> {
  const row = rows.get(table, id)
  if (row === undefined) throw new NotFound()
  requirePreconditions(conditions, etagOf(row.version))
  return row
}
