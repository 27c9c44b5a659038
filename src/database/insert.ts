import type { Dialect, InputType } from './dialect.ts'

/** A table whose rows are inserted in sets, and get their ids from the database. */
export interface Table {
  name: string
  id: string
  columns: Record<string, InputType | 'time' | { enum: string }>
}

/**
 * Inserts a row per input and says its id: as rows `ord`, which ascends with the inputs, and `id`. The
 * inputs are numbered before they are inserted, because neither database promises an order of insertion.
 */
export function insertSql (dialect: Dialect, { name, id, columns }: Table): string {
  const names = Object.keys(columns)
  const types = Object.fromEntries(Object.entries(columns).map(([column, type]) => [column, typeof type === 'string' && type !== 'time' ? type : 'text'] as const))
  const values = names.map((column) => {
    const type = columns[column]!
    if (typeof type === 'object') return dialect.toEnum(`i.${column}`, type.enum)
    return type === 'time' ? dialect.toTime(`i.${column}`) : `i.${column}`
  })
  const input = dialect.inputs('i', { ord: 'bigint', ...types })
  const into = (newId: string, from: string): string =>
    `INSERT INTO ${name} (${[id, ...names].join(', ')}) SELECT ${[newId, ...values].join(', ')} FROM ${from}`

  if (dialect.nestsWrites) {
    return `
      WITH numbered AS MATERIALIZED (SELECT nextval('${name}_${id}_seq') AS new_id, i.* FROM ${input}),
        inserted AS (${into('i.new_id', 'numbered AS i')})
      SELECT ord, new_id AS id FROM numbered`
  }
  // The one writer may count on by itself. Its ids ascend with the inputs, so they stand for their order.
  const last = `coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${name}'), 0)`
  return `${into(`${last} + i.ord + 1`, input)} RETURNING ${id} AS ord, ${id} AS id`
}
