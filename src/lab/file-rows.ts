import { setImmediate as nextTurn } from 'node:timers/promises'
import { Type, type TObject, type TProperties } from '@sinclair/typebox'
import { ValidationFailed } from '../errors.ts'
import { NO_ADDITIONAL_PROPERTIES } from '../http/common-schemas.ts'
import { buildValidatorCompiler } from '../http/validator-compiler.ts'
import { MessageStatusSchema } from '../messages/schemas.ts'
import { NewOrderSchema } from '../orders/schemas.ts'
import { PetStatusSchema } from '../pets/schemas.ts'
import { ROWS, type StoreRow } from './row-schemas.ts'

/** A record of a file, and the number of its line. */
export type FileRow<Row extends StoreRow = StoreRow> = Row & { line: number }

/** The largest stock of a file: all orders of a store that are cancelled do not lift it above 2^53. */
const MAX_STOCK = 2 ** 52 - 1

/** Number of rows that are validated in one turn of the event loop. */
const ROWS_PER_TURN = 500

const [category, pet, inventory, order, message] = ROWS.map(({ properties }) => properties) as TProperties[]

/** What a line must have, by type. */
const LINES: Record<string, TObject> = {
  category: closed(category!),
  pet: closed(pet!),
  inventory: closed({ ...inventory, quantity: Type.Integer({ minimum: 0, maximum: MAX_STOCK }) }),
  order: closed({
    ...order,
    ...Type.Required(Type.Pick(Type.Object(order!), ['id', 'petId', 'complete'])).properties,
    quantity: Type.Required(Type.Pick(NewOrderSchema, ['quantity'])).properties.quantity
  }),
  message: closed(message!)
}

function closed (properties: TProperties): TObject {
  return Type.Object(properties, NO_ADDITIONAL_PROPERTIES)
}

type Validate = (value: unknown) => { value: unknown } | { error: Error }

const validators = new Map<string, Validate>()

function validatorOf (type: unknown): Validate | undefined {
  if (typeof type !== 'string' || !Object.hasOwn(LINES, type)) return undefined
  let validate = validators.get(type)
  if (validate === undefined) {
    const compile = buildValidatorCompiler({ PetStatus: PetStatusSchema, MessageStatus: MessageStatusSchema })
    validate = compile({ schema: LINES[type] as object, httpPart: 'body' })
    validators.set(type, validate)
  }
  return validate
}

/** Validates each line of a file by itself. @throws ValidationFailed */
export async function validateLines (lines: readonly unknown[]): Promise<FileRow[]> {
  const rows: FileRow[] = []
  for (const [i, value] of lines.entries()) {
    if (i % ROWS_PER_TURN === 0) await nextTurn()
    rows.push({ ...validateLine(value, i + 1), line: i + 1 })
  }
  return rows
}

function validateLine (value: unknown, line: number): StoreRow {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw refusal(line, 'it must be an object')
  const { type } = value as { type?: unknown }
  const validate = validatorOf(type)
  if (validate === undefined) throw refusal(line, `type must be one of ${Object.keys(LINES).join(', ')}`)
  const result = validate(value)
  if ('error' in result) throw refusal(line, result.error.message.replace(/\.$/, ''))
  for (const name of ['id', 'categoryId', 'petId']) {
    if (Number((value as Record<string, unknown>)[name]) > Number.MAX_SAFE_INTEGER) {
      throw refusal(line, `${name} must be ${Number.MAX_SAFE_INTEGER} or less`)
    }
  }
  return result.value as StoreRow
}

export function refusal (line: number, reason: string): Error {
  return new ValidationFailed(`Line ${line}: ${reason}`)
}
