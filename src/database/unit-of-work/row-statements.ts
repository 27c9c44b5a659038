import { getOrAdd } from '../get-or-add.ts'
import type { Dialect } from '../dialect.ts'
import { columnOf, idOf, inputType, type Table } from '../table.ts'
import type { Link, RowLock } from './write.ts'

/**
 * The statements of rows, derived from the tables of the models. The rows of a statement are one parameter, a JSON
 * array. Their texts are few: they depend on tables, and not on what clients send.
 */

const texts = new Map<string, string>()

/** Returns a text of a dialect, built once for each key. */
export function once (dialect: Dialect, key: string, build: () => string): string {
  return getOrAdd(texts, `${dialect.name} ${key}`, build)
}

/** Returns what tells links apart; empty without one. */
export function linkKey (link: Link | undefined): string {
  return link === undefined ? '' : `${link.table.name}.${link.field}`
}

/**
 * Loads and locks rows of accounts by their ids, in the order of ids. Each link takes a list of inputs. With a link,
 * these are the ids of rows in another table, which has the wanted ids in a column.
 *
 *     SELECT r.id AS "id", r.account_id AS "accountId", … FROM (
 *       SELECT i.account, i.id FROM json_to_recordset($1) AS i("account" bigint, "id" bigint)
 *       UNION SELECT i.account, l.pet_id FROM json_to_recordset($2) AS i(…) JOIN orders l ON l.id = i.id AND …) AS w
 *     JOIN pets r ON r.id = w.id AND r.account_id IS NOT DISTINCT FROM w.account ORDER BY r.id FOR UPDATE OF r
 */
export function loadSql (
  dialect: Dialect, table: Table, links: ReadonlyArray<Link | undefined>, lock: RowLock
): string {
  return once(dialect, `load ${table.name} ${lock} ${links.map(linkKey).join()}`, () => {
    const wanted = links.map((link, i) => {
      const input = dialect.jsonRows('i', { account: 'bigint', id: 'bigint' }, i + 1)
      if (link === undefined) return `SELECT i.account, i.id FROM ${input}`
      return `
        SELECT i.account, l.${columnOf(link.table, link.field)} AS id FROM ${input}
        ${linkSql(dialect, link, 'i.id')}`
    })
    return `
      SELECT ${columnsOf(dialect, table, 'r')} FROM (${wanted.join(' UNION ')}) AS w
      ${inOrder(dialect)} ${table.name} r ON r.${idOf(table)} = w.id AND ${ofAccount(dialect, 'r', 'w')}
      ${dialect.locking(`ORDER BY r.${idOf(table)} FOR ${lock} OF r`)}`
  })
}

/** Locks all rows of accounts, in the order of ids. Returns the rows, or only their ids. */
export function allSql (dialect: Dialect, table: Table, returns: 'rows' | 'ids'): string {
  return once(dialect, `all ${returns} ${table.name}`, () => `
    SELECT ${returns === 'rows' ? columnsOf(dialect, table, 'r') : `r.${idOf(table)}`}
    FROM ${dialect.jsonRows('i', { account: 'bigint' })}
    ${inOrder(dialect)} ${table.name} r ON r.account_id = i.account
    ${dialect.locking(`ORDER BY r.${idOf(table)} FOR UPDATE OF r`)}`)
}

/**
 * Loads a row with some values, for each input: one that is not among some known rows, whose accounts and ids are the
 * first parameter, because an account can name the id of another one's row. With a link, the first value of the input
 * is the id of a row of another table, which has the value.
 *
 *     SELECT r.id AS "id", … FROM orders r WHERE r.id = ANY (ARRAY(
 *       SELECT (SELECT c.id FROM orders c WHERE c.pet_id = i."petId" AND … AND (c.account_id, c.id) NOT IN
 *         (SELECT k.account, k.id FROM json_to_recordset($1) AS k(…)) ORDER BY … LIMIT 1) AS id
 *       FROM json_to_recordset($2) AS i("account" bigint, "petId" bigint, …)))
 */
export function childrenSql (dialect: Dialect, table: Table, fields: string[], link?: Link): string {
  return once(dialect, `children ${table.name} ${fields.join()} ${linkKey(link)}`, () => {
    const types = Object.fromEntries(fields.map((field) => [field, inputType(table.columns[field]!)]))
    const id = idOf(table)
    const [first, ...rest] = fields.map((field): [string, string] =>
      [`c.${columnOf(table, field)}`, valueOf(dialect, table, field)])
    const value = link === undefined ? first![1] : `l.${columnOf(link.table, link.field)}`
    const linked = link === undefined ? '' : linkSql(dialect, link, first![1])
    // As the columns of the indexes are ordered.
    const columns: Array<[string, string]> = [[first![0], value], ['c.account_id', 'i.account'], ...rest]
    const { where, orderBy } = dialect.keyset(columns, `c.${id}`, '0', false)
    const known = `SELECT k.account, k.id FROM ${dialect.jsonRows('k', { account: 'bigint', id: 'bigint' })}`
    const ids = `
      SELECT (SELECT c.${id} FROM ${table.name} c
        WHERE ${where} AND (c.account_id, c.${id}) NOT IN (${known}) ORDER BY ${orderBy} LIMIT 1) AS id
      FROM ${dialect.jsonRows('i', { account: 'bigint', ...types }, 2)} ${linked}`
    return `SELECT ${columnsOf(dialect, table, 'r')} ${dialect.fromByIds(table.name, 'r', id, ids)}`
  })
}

export function insertSql (dialect: Dialect, table: Table, fields: string[]): string {
  return once(dialect, `insert ${table.name} ${fields.join()}`, () => `
    INSERT INTO ${table.name} (${fields.map((field) => columnOf(table, field)).join(', ')})
    SELECT ${fields.map((field) => valueOf(dialect, table, field)).join(', ')} FROM ${rowsOf(dialect, table, fields)}`)
}

/** Sets all columns of rows but those that never change. */
export function updateSql (dialect: Dialect, table: Table): string {
  return once(dialect, `update ${table.name}`, () => {
    const fields = Object.keys(table.columns).filter((field) => field !== table.id && field !== 'accountId')
    return `
      UPDATE ${table.name}
      SET ${fields.map((field) => `${columnOf(table, field)} = ${valueOf(dialect, table, field)}`).join(', ')}
      FROM ${rowsOf(dialect, table, [table.id, ...fields])} WHERE ${table.name}.${idOf(table)} = i."${table.id}"`
  })
}

export function deleteSql (dialect: Dialect, table: Table): string {
  return once(dialect, `delete ${table.name}`, () => `
    DELETE FROM ${table.name} WHERE ${idOf(table)} IN (
      SELECT i.id FROM ${dialect.jsonRows('i', { id: inputType(table.columns[table.id]!) })})`)
}

/** Returns the columns of a table or an alias by their fields, as the values that the service works with. */
function columnsOf (dialect: Dialect, table: Table, alias: string): string {
  return Object.entries(table.columns).map(([field, { name, type }]) => {
    const column = `${alias}.${name}`
    const value = typeof type === 'object' ? `CAST(${column} AS text)` : type === 'time' ? dialect.time(column) : column
    return `${value} AS "${field}"`
  }).join(', ')
}

function rowsOf (dialect: Dialect, { columns }: Table, fields: string[]): string {
  return dialect.jsonRows('i', Object.fromEntries(fields.map((field) => [field, inputType(columns[field]!)])))
}

/** Returns the value of an input as that of its column. */
function valueOf (dialect: Dialect, { columns }: Table, field: string): string {
  const { type } = columns[field]!
  const value = `i."${field}"`
  if (typeof type === 'object') return dialect.toEnum(value, type.enum)
  return type === 'time' ? dialect.toTime(value) : value
}

/** Joins the rows of a link with inputs `i`. */
function linkSql (dialect: Dialect, { table }: Link, id: string): string {
  return `${inOrder(dialect)} ${table.name} l ON l.${idOf(table)} = ${id} AND ${ofAccount(dialect, 'l', 'i')}`
}

/** A row that was found by its id belongs to the account that asks. No index serves: it would list the account. */
function ofAccount (dialect: Dialect, row: string, input: string): string {
  return dialect.equalsWithoutIndex(`${row}.account_id`, `${input}.account`)
}

/** SQLite could otherwise walk the table, and look the inputs up for each of its rows. */
function inOrder ({ isServer }: Dialect): string {
  return isServer ? 'JOIN' : 'CROSS JOIN'
}
