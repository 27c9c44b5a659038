import {
  ColumnTypeEnum, type ArgType, type ColumnType, type SqlQuery, type SqlQueryable
} from '@prisma/driver-adapter-utils'

/**
 * A statement of the service's own, as opposed to one of Prisma Client. Its text is fixed, so a connection prepares it
 * once. Every value of a client is in a parameter that is JSON.
 */
export interface OwnQuery extends SqlQuery { isOwn: true }

const TEXT: ArgType = { scalarType: 'string', arity: 'scalar' }

/** The text and the parameters of a statement of the service's own. */
export interface OwnStatement { sql: string, values: readonly unknown[] }

/** A connection that can run the service's own statements without Prisma's conversions. */
export interface Connection extends SqlQueryable {
  /** Returns the rows of a statement, none if it only writes. 64-bit integers are numbers. */
  runOwn?: ((sql: string, values: readonly unknown[]) => object[] | Promise<object[]>) | undefined
  /**
   * Runs statements one after the other in one round trip, and returns the rows of each. Exists where a statement costs
   * a round trip. After a statement that fails, no other runs.
   */
  runTogether?: RunTogether | undefined
  /** As `runTogether`, and commits in the same round trip. Only for a transaction, which ends with it. */
  runAndCommit?: RunTogether | undefined
}

export type RunTogether = (statements: readonly OwnStatement[]) => Promise<object[][]>

/** Runs a statement and returns its rows. Each input is one parameter: a JSON array of objects. */
export async function queryRows<Row> (
  connection: Connection, sql: string, inputs: ReadonlyArray<readonly object[]>
): Promise<Row[]> {
  return await queryRowsOfValues(connection, sql, inputs.map((list) => JSON.stringify(list)))
}

/** Runs a statement whose parameters are single values, and returns its rows. */
export async function queryRowsOfValues<Row> (
  connection: Connection, sql: string, values: readonly unknown[]
): Promise<Row[]> {
  if (connection.runOwn !== undefined) return await connection.runOwn(sql, values) as Row[]
  if (connection.runTogether !== undefined) return (await connection.runTogether([{ sql, values }]))[0] as Row[]
  const { columnNames, columnTypes, rows } = await connection.queryRaw(ownQuery(sql, values))
  return rows.map((values) => {
    const row: Record<string, unknown> = {}
    for (let i = 0; i < values.length; i++) row[columnNames[i]!] = toValue(values[i], columnTypes[i]!)
    return row as Row
  })
}

function ownQuery (sql: string, args: readonly unknown[]): OwnQuery {
  return { sql, args: [...args], argTypes: args.map(() => TEXT), isOwn: true }
}

/** Adapters return a 64-bit integer as text. Ids and counts fit a double, because the contract keeps ids below 2^53. */
function toValue (value: unknown, type: ColumnType): unknown {
  return type === ColumnTypeEnum.Int64 && value !== null ? Number(value) : value
}
