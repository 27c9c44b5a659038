import { setImmediate as nextTurn } from 'node:timers/promises'
import { getOrAdd } from '../database/get-or-add.ts'
import { ValidationFailed } from '../errors.ts'
import { NO_ADDITIONAL_PROPERTIES } from '../http/common-schemas.ts'
import { buildValidatorCompiler } from '../http/validator-compiler.ts'
import { MessageStatusSchema } from '../messages/schemas.ts'
import { PetStatusSchema } from '../pets/schemas.ts'
import { STORED_TABLES, type StoredTable, type StoreRow } from './stored-tables.ts'

/** A record of a file, and the number of its line. */
export interface FileRow { row: StoreRow, line: number }

/** Number of rows that are validated in one turn of the event loop. */
const ROWS_PER_TURN = 500

const TABLES: ReadonlyMap<unknown, StoredTable> = new Map(STORED_TABLES.map((table) => [table.type, table]))

type Validate = (value: unknown) => { value: unknown } | { error: Error }

const validators = new Map<StoredTable, Validate>()

function validatorOf (table: StoredTable): Validate {
  return getOrAdd(validators, table, () => {
    const compile = buildValidatorCompiler({ PetStatus: PetStatusSchema, MessageStatus: MessageStatusSchema })
    const { schema, imported } = table
    const properties = { ...schema.properties, ...imported }
    return compile({ schema: { ...schema, properties, ...NO_ADDITIONAL_PROPERTIES } as object, httpPart: 'body' })
  })
}

/** Validates each line of a file by itself. @throws ValidationFailed */
export async function validateLines (lines: readonly unknown[]): Promise<FileRow[]> {
  const rows: FileRow[] = []
  for (const [i, value] of lines.entries()) {
    if (i % ROWS_PER_TURN === 0) await nextTurn()
    rows.push({ row: validateLine(value, i + 1), line: i + 1 })
  }
  return rows
}

function validateLine (value: unknown, line: number): StoreRow {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw refusal(line, 'it must be an object')
  const table = TABLES.get((value as { type?: unknown }).type)
  if (table === undefined) throw refusal(line, `type must be one of ${[...TABLES.keys()].join(', ')}`)
  const result = validatorOf(table)(value)
  if ('error' in result) throw refusal(line, result.error.message.replace(/\.$/, ''))
  for (const [member, { type }] of Object.entries(table.table.columns)) {
    if (type === 'bigint' && Number((value as Record<string, unknown>)[member]) > Number.MAX_SAFE_INTEGER) {
      throw refusal(line, `${member} must be ${Number.MAX_SAFE_INTEGER} or less`)
    }
  }
  return result.value as StoreRow
}

export function refusal (line: number, reason: string): Error {
  return new ValidationFailed(`Line ${line}: ${reason}`)
}
