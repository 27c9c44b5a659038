import * as models from '../generated/tables.ts'
import type { Table } from './table.ts'

/** The names of the tables whose rows belong to accounts. */
export const ACCOUNT_TABLES: readonly string[] = Object.values<Table>(models)
  .filter(({ columns }) => 'accountId' in columns).map(({ name }) => name)
