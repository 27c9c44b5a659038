// The program of the writer thread: runs the transactions that WriterThread sends.

import { parentPort, workerData } from 'node:worker_threads'
import { transactionHasEnded, type ReservedConnection } from '../transact.ts'
import { openWriter } from './open-connection.ts'
import { Transactions } from './transactions.ts'
import { toPlainError, type WriterOptions, type WriterReply, type WriterRequest } from './writer-messages.ts'

const { url, lockTimeout } = workerData as WriterOptions
const transactions = new Transactions(await openWriter(url, lockTimeout), lockTimeout)

/** The transactions that have not ended, by their numbers. */
const open = new Map<number, Promise<ReservedConnection>>()

function reply (message: WriterReply): void {
  parentPort!.postMessage(message)
}

async function run ({ transaction, begins, step, statements }: WriterRequest): Promise<object[][]> {
  if (begins) open.set(transaction, transactions.begin())
  const begun = open.get(transaction)
  if (step === 'rollback') {
    open.delete(transaction)
    await (await begun)?.rollback(true)
    return []
  }
  if (begun === undefined) throw transactionHasEnded()
  const rows = await (await begun)[step](statements)
  // After a failure, a ROLLBACK follows.
  if (step === 'commit') open.delete(transaction)
  return rows
}

parentPort!.on('message', (request: WriterRequest | 'end') => {
  if (request === 'end') process.exit()
  const { id } = request
  run(request).then(
    (result) => { reply({ id, result }) },
    (error: unknown) => { reply({ id, error: toPlainError(error) }) }
  )
})
reply('ready')
