// The program of the writer thread: runs the transactions that WriterThread sends.

import { parentPort, workerData } from 'node:worker_threads'
import { transactionHasEnded, type OpenTransaction } from '../open-transaction.ts'
import { SqliteAdapterFactory } from './adapter.ts'
import { toPlainError, type WriterOptions, type WriterReply, type WriterRequest } from './writer-messages.ts'

const { url, lockTimeout } = workerData as WriterOptions
const adapter = await new SqliteAdapterFactory(url, lockTimeout).connectWriter()

/** The transactions that have not ended, by their numbers. */
const open = new Map<number, Promise<OpenTransaction>>()

function reply (message: WriterReply): void {
  parentPort!.postMessage(message)
}

async function run (request: WriterRequest): Promise<unknown> {
  const { transaction: number } = request
  if (request.begins) open.set(number, adapter.startTransaction())
  const begun = open.get(number)
  if (request.step === 'rollback') open.delete(number)
  if (begun === undefined) {
    if (request.step === 'rollback') return undefined
    throw transactionHasEnded()
  }
  const transaction = await begun
  switch (request.step) {
    case 'query': return await transaction.queryRaw(request.query)
    case 'execute': return await transaction.executeRaw(request.query)
    case 'rollback': return await transaction.rollback()
  }
  const rows = request.statements.map(({ sql, values }) => transaction.runOwn!(sql, values))
  if (request.step === 'commit') {
    await transaction.commit()
    // After a failure, a ROLLBACK follows.
    open.delete(number)
  }
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
