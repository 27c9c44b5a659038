// The program of the writer thread: runs the statements that WriterThread sends, on a connection of its own.

import { parentPort, workerData } from 'node:worker_threads'
import type { OwnStatement } from '../statements.ts'
import { openWriter } from './open-connection.ts'
import { statementsOn } from './transactions.ts'
import type { WriterOptions, WriterReply } from './writer-thread.ts'

const { url, lockTimeout } = workerData as WriterOptions
const run = statementsOn(await openWriter(url, lockTimeout), lockTimeout)

function reply (message: WriterReply): void {
  parentPort!.postMessage(message)
}

parentPort!.on('message', (message: readonly OwnStatement[] | 'end') => {
  if (message === 'end') process.exit()
  // They settle in the order of the messages.
  run(message).then(
    (rows) => { reply({ rows }) },
    ({ message, code }: Error & { code?: unknown }) => { reply({ error: { message, code } }) }
  )
})
reply('ready')
