import type { SqlQueryable } from '@prisma/driver-adapter-utils'

/**
 * A statement of the service's own, as opposed to one of Prisma Client. Its text is fixed, so a connection prepares it
 * once. Every value of a client is in a parameter.
 */
export interface OwnStatement { sql: string, values: readonly unknown[] }

/**
 * A connection that can run the service's own statements without Prisma's conversions, in one of two ways: `runOwn`, or
 * `runTogether` where a statement costs a round trip. 64-bit integers are numbers: ids and counts fit a double, because
 * the contract keeps ids below 2^53.
 */
export interface Connection extends SqlQueryable {
  /** Returns the rows of a statement, none if it only writes. */
  runOwn?: ((sql: string, values: readonly unknown[]) => object[] | Promise<object[]>) | undefined
  /**
   * Runs statements one after the other in one round trip, and returns the rows of each. After a statement that fails,
   * no other runs.
   */
  runTogether?: RunTogether | undefined
  /**
   * Runs statements one after the other in one message, and returns a promise of the rows of each. A statement settles
   * without waiting for those after it, and its error is not theirs. Only outside a transaction.
   */
  runEach?: ((statements: readonly OwnStatement[]) => Array<Promise<object[]>>) | undefined
  /** As `runTogether`, and commits in the same round trip. Only for a transaction, which ends with it. */
  runAndCommit?: RunTogether | undefined
}

export type RunTogether = (statements: readonly OwnStatement[]) => Promise<object[][]>

/** Runs a statement and returns its rows. */
export async function queryRows<Row> (
  connection: Connection, sql: string, values: readonly unknown[]
): Promise<Row[]> {
  if (connection.runOwn !== undefined) return await connection.runOwn(sql, values) as Row[]
  return (await connection.runTogether!([{ sql, values }]))[0] as Row[]
}

/** Runs statements, in one round trip where each would cost one. Returns the rows of each. */
export async function runAll (connection: Connection, statements: readonly OwnStatement[]): Promise<object[][]> {
  if (statements.length === 0) return []
  if (connection.runTogether !== undefined) return await connection.runTogether(statements)
  const results: object[][] = []
  for (const { sql, values } of statements) results.push(await connection.runOwn!(sql, values))
  return results
}
