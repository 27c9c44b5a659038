import type { FastifyInstance } from 'fastify'
import { ignoreKeyUse } from './groups.ts'

/**
 * Records how writes of a service try their fast paths from now on.
 *
 * @returns a function that returns, for each write since its last call that tried, whether the fast path wrote anything
 */
export function fastPathsOf (
  { app }: { app: Pick<FastifyInstance, 'commit' | 'database'> }
): () => boolean[] {
  ignoreKeyUse(app)
  const { database } = app
  const tried: boolean[] = []
  const { commitSteps } = database
  database.commitSteps = (runs) => commitSteps(runs)?.then((rows) => {
    tried.push(...rows.map((row) => row !== undefined))
    return rows
  })
  return () => tried.splice(0)
}
