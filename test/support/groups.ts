import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Command } from '../../src/database/group-commit/command.ts'
import type { Commit } from '../../src/database/group-commit/committer.ts'

/** After this time in the queue, writes do not wait for more of them. A longer time changes nothing. */
const QUEUED_MS = 40

type Committing = Pick<FastifyInstance, 'commit' | 'database'>

/** Keeps all connections of the committer busy, so that writes wait. @returns a function that lets them continue */
export async function holdWrites ({ commit, database }: Committing): Promise<() => void> {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  for (let i = 0; i < database.writers; i++) {
    await new Promise<void>((resolve, reject) => {
      const hold: Command<object, undefined> = {
        name: 'hold',
        async runAll (_tx, inputs) {
          resolve()
          await released
          return inputs.map(() => ({ record: undefined }))
        }
      }
      commit(hold, {}, { account: null }).catch(reject)
    })
  }
  return release
}

/** Drops the note of a key's last use. It comes at the turn of an hour, and would change the group that it joins. */
export function ignoreKeyUse (app: Pick<FastifyInstance, 'commit'>): void {
  const { commit } = app
  app.commit = (async (command, input, context) =>
    command.name === 'markKeyUsed' ? { record: undefined } : await commit(command, input, context)) as Commit
}

/** Resolves when the next write of an account waits for its transaction. Those of the service can come at any time. */
export async function nextWrite (app: Pick<FastifyInstance, 'commit'>): Promise<void> {
  const { commit } = app
  await new Promise<void>((resolve) => {
    app.commit = (async (command, input, context) => {
      const written = commit(command, input, context)
      if (context.account !== null) {
        app.commit = commit
        resolve()
      }
      return await written
    }) as Commit
  })
}

/**
 * Sends requests that write, so that they wait together and share one transaction. Each is sent when the one before
 * waits, or was refused: they have this order in the transaction.
 *
 * @returns their results
 */
export async function inOneGroup<Result> (app: Committing, send: Array<() => Promise<Result>>): Promise<Result[]> {
  const release = await holdWrites(app)
  try {
    const sent: Array<Promise<Result>> = []
    for (const request of send) {
      const waits = nextWrite(app)
      const answer = request()
      sent.push(answer)
      await Promise.race([waits, answer])
    }
    await sleep(QUEUED_MS)
    release()
    return await Promise.all(sent)
  } finally {
    release()
  }
}
