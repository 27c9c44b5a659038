import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Command } from '../../src/database/group-commit/command.ts'

/** Time for requests to reach the queue of writes. A machine that takes longer makes groups that are not shared. */
const ARRIVAL_MS = 100

/**
 * Sends requests that write while all connections of the committer are busy, so that they wait and then share one
 * transaction. @returns the results of the requests
 */
export async function inOneGroup<Result> (
  { commit, database }: Pick<FastifyInstance, 'commit' | 'database'>, send: () => Array<Promise<Result>>
): Promise<Result[]> {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const held: Array<Promise<unknown>> = []
  for (let i = 0; i < database.writers; i++) {
    await new Promise<void>((resolve) => {
      const hold: Command<object, undefined> = {
        name: 'hold',
        async run (_tx, inputs) {
          resolve()
          await released
          return inputs.map(() => ({ record: undefined }))
        }
      }
      held.push(commit(hold, {}, { account: null }))
    })
  }
  const sent = send()
  await sleep(ARRIVAL_MS)
  release()
  await Promise.all(held)
  return await Promise.all(sent)
}
