import type { Database } from './database.ts'
import { LargeReads } from './reads/large-reads.ts'
import type { Call, Query, Read, ReadView } from './reads/query.ts'
import { SharedReads } from './reads/shared-reads.ts'
import { StatementRunner, type RunnerOptions } from './reads/statement-runner.ts'
import { Views } from './reads/views.ts'

/**
 * Returns a function that batches reads, and one for reads of one moment, which share their limits. All calls of one
 * query in one turn of the event loop become one statement, or a few if the query is costly. The first call after a
 * quiet turn runs at once, alone. In a crowd that would cost more: answers that are sent together wake their clients
 * together. Calls whose rows can be large have statements of their own, one at a time.
 *
 * Both throw Overloaded if too many reads wait, and DatabaseUnavailable if the database does not respond.
 */
export function createReads (database: Database, options: RunnerOptions): { read: Read, readView: ReadView } {
  const runner = new StatementRunner(database, options)
  const shared = new SharedReads(runner, database.dialect.name)
  const large = new LargeReads(runner, options)
  const views = new Views(database, runner, large, options)
  return { read, readView: async (account, use) => await views.run(account, use) }

  async function read<Input extends object, Row> (query: Query<Input, Row>, input: Input): Promise<Row | undefined> {
    const isLarge = query.maxRowBytes !== undefined
    const isAtOnce = shared.isAlone() && !isLarge
    if (isAtOnce && database.readRow !== undefined) return runner.runAtOnce(query, input) as Row
    runner.admit(query, input)
    return await new Promise<Row | undefined>((resolve, reject) => {
      const call = { query, input, since: performance.now(), resolve, reject } as Call
      if (isAtOnce) void runner.run([call])
      else if (isLarge) large.add(call)
      else shared.add(call)
    })
  }
}
