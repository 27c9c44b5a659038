import type { Database } from './database.ts'
import { createLargeReads } from './reads/large-reads.ts'
import type { Call, Query, Read, ReadView } from './reads/query.ts'
import { createSharedReads } from './reads/shared-reads.ts'
import { StatementRunner, type RunnerOptions } from './reads/statement-runner.ts'
import { createViews } from './reads/views.ts'

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
  const shared = createSharedReads(runner, database.dialect.name)
  const addLarge = createLargeReads(runner, options)
  const runOne = (call: Call): void => { void runner.run([call]) }
  return { read, readView: createViews(database, runner, addLarge, options) }

  async function read<Input extends object, Row> (query: Query<Input, Row>, input: Input): Promise<Row | undefined> {
    const isLarge = query.maxRowBytes !== undefined
    const isAtOnce = shared.isAlone() && !isLarge
    if (isAtOnce && database.readRow !== undefined) return runner.runAtOnce(query, input) as Row
    return await runner.admit(query, input, isLarge ? addLarge : isAtOnce ? runOne : shared.add)
  }
}
