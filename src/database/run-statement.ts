import type { TransactionClient } from './prisma-client.ts'

/**
 * The only place that runs SQL text through Prisma Client. It is safe although Prisma calls it unsafe: the text is
 * assembled from constants of this program, and every value of a client travels in a parameter that is JSON.
 */

/** Runs a statement and returns its rows. Each input is one parameter: a JSON array of objects. */
export async function queryRows<Row> (
  client: TransactionClient, sql: string, inputs: ReadonlyArray<readonly object[]>
): Promise<Row[]> {
  const rows = await client.$queryRawUnsafe<Row[]>(sql, ...inputs.map((list) => JSON.stringify(list)))
  // Taken out, because Prisma's promise retains its result until the next collection of the whole heap.
  return rows.splice(0)
}

/** Runs a statement that returns no rows. */
export async function executeStatement (
  client: TransactionClient, sql: string, inputs: readonly object[]
): Promise<void> {
  await client.$executeRawUnsafe(sql, JSON.stringify(inputs))
}
