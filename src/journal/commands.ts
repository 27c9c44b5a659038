import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { Page } from '../database/sql/keyset-pagination.ts'
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

interface LockedJournal extends LockedBatches {
  version: number
  keep: number | null
  dropped: number
  /** The size of its batches as the database has it. */
  bytes: number
}

/** Records requests, unless the journal is off. The journal is locked, so ids ascend in the order of commits. */
export const recordRequests: Command<RecordInput, undefined> = {
  name: 'recordRequests',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const journals = await lockJournals(tx, inputs)
    const isOn = ({ account }: { account: number }): boolean => typeof journals.get(account)?.keep === 'number'
    const changed = new Set<LockedJournal>()
    for (const { account, requests, dropped } of inputs.filter(isOn)) {
      const journal = journals.get(account)!
      journal.batches = await storedBatches(tx, account)
      await addRequests(tx, journal, requests)
      await trimBatches(tx, journal, journal.keep!)
      journal.dropped += dropped
      changed.add(journal)
    }
    await saveJournals(tx, [...changed])
    return inputs.map((input) => ({ record: undefined, changes: isOn(input) ? { requests: [input.account] } : {} }))
  }
}

/** Returns the journals of accounts, still without their batches. */
async function lockJournals (
  { dialect, query }: Transaction, accounts: Array<{ account: number }>
): Promise<Map<number, LockedJournal>> {
  const rows = await query<Omit<LockedJournal, 'batches'>>(`
    SELECT j.account_id AS account, j.version, j.keep, j.first_id AS "firstId", j.last_id AS "lastId", j.bytes, j.dropped
    FROM journals j
    WHERE j.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    ORDER BY j.account_id ${dialect.forUpdate}`, distinct(accounts.map(({ account }) => ({ account }))))
  return new Map(rows.map((row) => [row.account, { ...row, batches: [] }]))
}

/** Saves journals whose batches are known. */
async function saveJournals (
  { dialect, execute, storedBytes }: Transaction, journals: LockedJournal[]
): Promise<void> {
  for (const journal of journals) {
    const bytes = sizeOf(journal.batches)
    storedBytes.add(journal.account, bytes - journal.bytes)
    journal.bytes = bytes
  }
  await execute(`
    UPDATE journals SET version = i.version, keep = i.keep, first_id = i."firstId", last_id = i."lastId",
      bytes = i.bytes, dropped = i.dropped
    FROM ${dialect.jsonRows('i', {
      account: 'bigint',
      version: 'bigint',
      keep: 'bigint',
      firstId: 'bigint',
      lastId: 'bigint',
      bytes: 'bigint',
      dropped: 'bigint'
    })} WHERE journals.account_id = i.account`,
  journals.map(({ batches: _, ...journal }) => journal))
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
  run: put
}

async function put (tx: Transaction, { account, keep, conditions }: JournalChange): Promise<CommandResult<Journal>> {
  const { dialect, execute } = tx
  // With the row of a journal that is off there is something to lock.
  await execute(`
    INSERT INTO journals (account_id) SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })}
    WHERE true ON CONFLICT (account_id) DO NOTHING`, [{ account }])
  const journal = (await lockJournals(tx, [{ account }])).get(account)!
  const failed = checkPreconditions(conditions, journal.keep === null ? undefined : etagOf(journal))
  if (failed !== undefined) return failed
  const isChanged = journal.keep !== keep
  if (isChanged) {
    Object.assign(journal, { keep, version: journal.version + 1, batches: await storedBatches(tx, account) })
    await trimBatches(tx, journal, keep)
    await saveJournals(tx, [journal])
  }
  const { bytes, dropped } = journal
  const record = { keep, requests: countOf(journal), bytes, dropped }
  return { record, etag: etagOf(journal), ...isChanged && { changes: { lab: [account] } } }
}

/** Turns a journal off and deletes its requests. */
export const deleteJournal: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteJournal',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const journals = await lockJournals(tx, inputs)
    const ended = new Set<LockedJournal>()
    const results = inputs.map(({ account, conditions }): CommandResult<undefined> => {
      const journal = journals.get(account)
      if (journal === undefined || journal.keep === null) return new JournalNotFound()
      const failed = checkPreconditions(conditions, etagOf(journal))
      if (failed !== undefined) return failed
      Object.assign(journal, { keep: null, version: journal.version + 1, dropped: 0 })
      ended.add(journal)
      return { record: undefined, changes: { lab: [account] } }
    })
    for (const journal of ended) await emptyBatches(tx, journal)
    await saveJournals(tx, [...ended])
    return results
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
  run: async (tx, { account, conditions, link }) => {
    const journals = await lockJournals(tx, [{ account }])
    const read = async (id: number): Promise<BatchRow | undefined> =>
      (await tx.query<BatchRow>(batchQuery.sql(tx.dialect), [{ account, id, texts: true }]))[0]
    const page = await requestPage(read, { limit: PAGE_SIZE, after: 0, filters: {} })
    const failed = checkPreconditions(conditions, pageEtag(page.records, link(page.next)))
    if (failed !== undefined) return failed
    const changed = [...journals.values()]
    for (const journal of changed) await emptyBatches(tx, journal)
    await saveJournals(tx, changed)
    return { record: undefined }
  }
}
