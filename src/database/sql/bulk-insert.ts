import type { Dialect, InputType } from '../dialect.ts'

/** A table whose rows are inserted in sets, with ids that were taken before. */
export interface Table {
  name: string
  /** The column that the database counts. */
  id: string
  columns: Record<string, InputType | 'time' | { enum: string }>
}

/** Inserts a row per input, whose names are the columns'. */
export function insertSql (dialect: Dialect, { name, id, columns }: Table, parameter: number): string {
  const names = Object.keys(columns)
  const types = Object.fromEntries(Object.entries(columns).map(([column, type]) => [column, typeof type === 'string' && type !== 'time' ? type : 'text'] as const))
  const values = names.map((column) => {
    const type = columns[column]!
    if (typeof type === 'object') return dialect.toEnum(`i.${column}`, type.enum)
    return type === 'time' ? dialect.toTime(`i.${column}`) : `i.${column}`
  })
  return `
    INSERT INTO ${name} (${[id, ...names].join(', ')}) SELECT ${[`i.${id}`, ...values].join(', ')}
    FROM ${dialect.jsonRows('i', { [id]: 'bigint', ...types }, parameter)}`
}
