import type { Dialect } from '../dialect.ts'
import type { Table } from '../table.ts'

const texts = new Map<string, string>()

/** Returns a statement that inserts one row for each input. The members of inputs are named as the columns. */
export function insertSql (dialect: Dialect, table: Table): string {
  const key = `${dialect.name} ${table.name}`
  let text = texts.get(key)
  if (text === undefined) {
    text = buildInsert(dialect, table)
    texts.set(key, text)
  }
  return text
}

function buildInsert (dialect: Dialect, { name, id, columns }: Table): string {
  const names = Object.keys(columns)
  const types = Object.fromEntries(Object.entries(columns).map(([column, type]) =>
    [column, typeof type === 'string' && type !== 'time' ? type : 'text'] as const))
  const values = names.map((column) => {
    const type = columns[column]!
    if (typeof type === 'object') return dialect.toEnum(`i.${column}`, type.enum)
    return type === 'time' ? dialect.toTime(`i.${column}`) : `i.${column}`
  })
  return `
    INSERT INTO ${name} (${[id, ...names].join(', ')}) SELECT ${[`i.${id}`, ...values].join(', ')}
    FROM ${dialect.jsonRows('i', { [id]: 'bigint', ...types })}`
}
