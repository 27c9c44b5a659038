import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import type { Page } from '../database/sql/keyset-pagination.ts'
import type { AccountNeeds } from '../database/unit-of-work/load.ts'
import { all, forUpdate } from '../database/unit-of-work/write.ts'
import { apiKeys, journals, type JournalRow } from '../generated/tables.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { pageEtag } from '../http/responses.ts'
import {
  addRequests, emptyBatches, sizeOf, storedBatches, trimBatches, type EndedRequest, type LockedBatches
} from './batches.ts'
import { JournalNotFound } from './errors.ts'
import { batchQuery, journalEtag, requestPage, type BatchRow } from './queries.ts'
import type { Journal } from './schemas.ts'

export interface RecordInput {
  account: number
  /** In the order in which their responses ended. */
  requests: EndedRequest[]
  /** The number of requests before them that are lost. */
  dropped: number
}

type LockedJournal = JournalRow & LockedBatches

const needs = ({ account }: { account: number }): AccountNeeds => ({ account, needs: [forUpdate(journals, account)] })

/** Records requests, unless the journal is off. The journal is locked, so ids ascend in the order of commits. */
export const recordRequests: Command<RecordInput, undefined> = {
  name: 'recordRequests',
  runsAlone: 'with its kind',
  needs,
  async run (tx, { account, requests, dropped }) {
    const journal = journalOf(tx, account)
    if (journal === undefined || journal.keep === null) return { record: undefined }
    journal.batches = await storedBatches(tx, account)
    await addRequests(tx, journal, requests)
    await trimBatches(tx, journal, journal.keep)
    journal.dropped += dropped
    save(tx, journal)
    return { record: undefined, changes: { requests: [account] } }
  }
}

/** Returns the journal of an account, still without its batches; `undefined` for one that was never on. */
function journalOf (tx: Transaction, account: number): LockedJournal | undefined {
  const row = tx.rows(account).get(journals, account)
  return row && { ...row, batches: [] }
}

/** Saves a journal whose batches are known. */
function save (tx: Transaction, { batches, ...journal }: LockedJournal): LockedJournal {
  const { accountId } = journal
  const bytes = sizeOf(batches)
  tx.storedBytes.add(accountId, bytes - journal.bytes)
  return { ...tx.rows(accountId).amend(journals, journal, { bytes }), batches }
}

function countOf ({ firstId, lastId }: LockedJournal): number {
  return lastId - firstId + 1
}

function etagOf (journal: LockedJournal): string {
  return journalEtag({ ...journal, requests: countOf(journal) })
}

export interface JournalChange { account: number, keep: number, conditions: Conditions }

/** Turns a journal on, or changes how many requests it keeps. */
export const putJournal: Command<JournalChange, Journal> = {
  name: 'putJournal',
  runsAlone: 'with its kind',
  // A journal that was never on has no row to lock, but its account has API keys.
  needs: ({ account }) => ({ account, needs: [all(apiKeys), forUpdate(journals, account)] }),
  run: put
}

async function put (tx: Transaction, { account, keep, conditions }: JournalChange): Promise<CommandResult<Journal>> {
  let journal = journalOf(tx, account)
  const isOn = journal !== undefined && journal.keep !== null
  const failed = checkPreconditions(conditions, isOn ? etagOf(journal!) : undefined)
  if (failed !== undefined) return failed
  const isChanged = journal?.keep !== keep
  journal ??= { ...tx.rows(account).insert(journals, { accountId: account }), batches: [] }
  if (isChanged) {
    Object.assign(journal, { keep, version: journal.version + 1, batches: await storedBatches(tx, account) })
    await trimBatches(tx, journal, keep)
    journal = save(tx, journal)
  }
  const { bytes, dropped } = journal
  const record = { keep, requests: countOf(journal), bytes, dropped }
  return { record, etag: etagOf(journal), ...isChanged && { changes: { lab: [account] } } }
}

/** Turns a journal off and deletes its requests. */
export const deleteJournal: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteJournal',
  runsAlone: 'with its kind',
  needs,
  async run (tx, { account, conditions }) {
    const journal = journalOf(tx, account)
    if (journal === undefined || journal.keep === null) return new JournalNotFound()
    const failed = checkPreconditions(conditions, etagOf(journal))
    if (failed !== undefined) return failed
    Object.assign(journal, { keep: null, version: journal.version + 1, dropped: 0 })
    await emptyBatches(tx, journal)
    save(tx, journal)
    return { record: undefined, changes: { lab: [account] } }
  }
}

interface DeleteRequests {
  account: number
  conditions: Conditions
  /** Returns the `Link` of the first page of the list, whose entity tag the conditions refer to. */
  link: (next: Page['next']) => string
}

/** Number of requests on the first page of the list. */
const PAGE_SIZE = 20

/** Deletes the requests of a journal, which stays on. */
export const deleteRequests: Command<DeleteRequests, undefined> = {
  name: 'deleteRequests',
  runsAlone: true,
  needs,
  run: async (tx, { account, conditions, link }) => {
    const read = async (id: number): Promise<BatchRow | undefined> =>
      (await tx.query<BatchRow>(batchQuery.sql(tx.dialect), [{ account, id, texts: true }]))[0]
    const page = await requestPage(read, { limit: PAGE_SIZE, after: 0, filters: {} })
    const failed = checkPreconditions(conditions, pageEtag(page.records, link(page.next)))
    if (failed !== undefined) return failed
    const journal = journalOf(tx, account)
    if (journal === undefined) return { record: undefined }
    await emptyBatches(tx, journal)
    save(tx, journal)
    return { record: undefined }
  }
}
