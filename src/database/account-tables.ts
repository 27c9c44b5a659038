import * as models from '../generated/tables.ts'
import type { ModelTable } from './model-table.ts'

/** The names of the tables whose rows belong to accounts. */
export const ACCOUNT_TABLES: readonly string[] = Object.values<ModelTable>(models)
  .filter(({ columns }) => 'accountId' in columns).map(({ name }) => name)
