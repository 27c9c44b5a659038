import type pg from 'pg'
import { OperationalError } from '../../operational-error.ts'
import { namesSchema, schemaOf } from './connection-url.ts'

/**
 * Settings on which texts of values, or the meaning of statements, depend. A role or a database can preset others.
 * `default_transaction_read_only` is not among them: where it is on, an operator wants no writes.
 */
const SETTINGS = [
  'client_encoding=UTF8', "DateStyle='ISO, MDY'", 'IntervalStyle=postgres', "TimeZone='UTC'", 'extra_float_digits=1',
  'bytea_output=hex', "lc_monetary='C'", "lc_numeric='C'", "lc_time='C'", 'standard_conforming_strings=on',
  'array_nulls=on', 'transform_null_equals=off', 'quote_all_identifiers=off', 'exit_on_error=off',
  "default_transaction_isolation='read committed'"
]

interface State { schema: string | null, encoding: string }

export interface SessionOptions {
  /** More settings, as `name=value`. */
  settings?: string[]
  /** Accept that the schema does not exist yet. */
  canMissSchema?: boolean
}

/**
 * Prepares a new connection for the service's statements, which name tables without their schema. By SET, because
 * `options` in the URL would replace these settings, and some poolers refuse unknown startup parameters.
 *
 * @throws OperationalError if the database cannot store every text, if it has not the configured schema, or if a
 *   search_path selects another one and the URL names none
 */
export async function prepareSession (
  client: pg.ClientBase, url: string, { settings = [], canMissSchema = false }: SessionOptions = {}
): Promise<void> {
  const schema = schemaOf(url)
  const all = [...SETTINGS, `search_path=${client.escapeIdentifier(schema)}`, ...settings]
  const state = "SELECT current_schema() AS schema, current_setting('server_encoding') AS encoding"
  const results = await client.query([state, ...all.map((setting) => `SET ${setting}`), state].join('; ')) as unknown
  const [before, after] = [0, -1].map((i) => (results as Array<pg.QueryResult<State>>).at(i)!.rows[0]!)
  if (after!.encoding !== 'UTF8') {
    throw new OperationalError(`The database in DATABASE_URL has the encoding ${after!.encoding}, which cannot store ` +
      'every text: create one with the encoding UTF8.')
  }
  const preset = before!.schema
  if (preset !== null && preset !== schema && !preset.startsWith('pg_') && !namesSchema(url)) {
    throw new OperationalError(`A search_path selects the schema ${preset}, and DATABASE_URL names none: ` +
      `add the parameter schema=${preset} to it, or schema=${schema} to use that one.`)
  }
  if (after!.schema !== schema && !canMissSchema) {
    throw new OperationalError(`The database in DATABASE_URL has no schema ${schema} that its user may use: ` +
      'create it with npx --no petstore migrate, or grant its use.')
  }
}
