import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Command } from '../../src/database/group-commit/command.ts'

/** Time for requests to reach the queue of writes. A machine that takes longer makes groups that are not shared. */
const ARRIVAL_MS = 100

type Committing = Pick<FastifyInstance, 'commit' | 'database'>

/** Keeps all connections of the committer busy, so that writes wait. @returns a function that lets them continue */
export async function holdWrites ({ commit, database }: Committing): Promise<() => void> {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  for (let i = 0; i < database.writers; i++) {
    await new Promise<void>((resolve, reject) => {
      const hold: Command<object, undefined> = {
        name: 'hold',
        async run (_tx, inputs) {
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

/** Sends requests that write, so that they wait together and share one transaction. @returns their results */
export async function inOneGroup<Result> (app: Committing, send: () => Array<Promise<Result>>): Promise<Result[]> {
  const release = await holdWrites(app)
  const sent = send()
  await sleep(ARRIVAL_MS)
  release()
  return await Promise.all(sent)
}
