/**
 * A statement of the service's own, as opposed to one of Prisma Client. Its text is fixed, so a connection prepares it
 * once. Every value of a client is in a parameter.
 */
export interface OwnStatement { sql: string, values: readonly unknown[] }

export const BEGIN: OwnStatement = { sql: 'BEGIN', values: [] }
export const COMMIT: OwnStatement = { sql: 'COMMIT', values: [] }
export const ROLLBACK: OwnStatement = { sql: 'ROLLBACK', values: [] }

/**
 * Runs statements one after the other, on a server in one round trip, and returns the rows of each. After one that
 * fails, no other runs; on a server, the error has its position as `statement`. 64-bit integers are numbers: ids and
 * counts fit a double, because the contract keeps ids below 2^53.
 */
export type Run = (statements: readonly OwnStatement[]) => Promise<object[][]>

/** Runs one statement, and returns its rows. */
export async function queryRows<Row> (run: Run, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
  return (await run([{ sql, values }]))[0] as Row[]
}
