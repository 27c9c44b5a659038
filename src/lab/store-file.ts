import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Type } from '@sinclair/typebox'
import type { Read } from '../database/reads/query.ts'
import { InvalidJson } from '../errors.ts'
import { canonicalJson } from '../http/idempotency.ts'
import { parseJson } from '../http/json-text.ts'
import { SnapshotTooLarge } from './errors.ts'
import { recordsOf } from './row-records.ts'
import { rowsOfSnapshot, rowsOfStore, type StoredRow } from './row-slices.ts'
import { MAX_STORE_ROWS } from './store-rows.ts'

/** A small store. */
const EXAMPLE = [
  { type: 'category', id: 1, name: 'Cats' },
  { type: 'pet', id: 1, name: 'Felix', categoryId: 1, status: 'available' },
  { type: 'inventory', petId: 1, quantity: 12, status: 'available' }
].map((row) => `${JSON.stringify(row)}\n`).join('')

/** Maximum size of a line in bytes: a message of 10,000 characters, each escaped as two halves of 6 bytes, and 8 KB. */
const MAX_LINE_BYTES = 128_192

/** Number of bytes that are parsed in one turn of the event loop. */
const BYTES_PER_TURN = 65_536

/** The lines of a file, parsed. As JSON it is its hash, by which an Idempotency-Key knows it. */
export class FileLines {
  readonly values: unknown[] = []
  readonly #hash = createHash('sha256')

  add (line: Buffer): void {
    const number = this.values.length + 1
    if (number > MAX_STORE_ROWS) throw new SnapshotTooLarge('The file', MAX_STORE_ROWS)
    if (line.length > MAX_LINE_BYTES) throw new InvalidJson(`line ${number} has more than ${MAX_LINE_BYTES} bytes`)
    const value = parseJson(line, `line ${number}: `)
    // A nested value is in no record, so the file is refused. Its depth could overflow the stack of canonicalJson.
    this.#hash.update(isFlat(value) ? canonicalJson(value) : line).update('\n')
    this.values.push(value)
  }

  toJSON (): string {
    return this.#hash.copy().digest('hex')
  }
}

function isFlat (value: unknown): boolean {
  return Object.values(value ?? {}).every((member) => member === null || typeof member !== 'object')
}

/**
 * Parses a file, which has a value of JSON in each line. The last line may lack its end.
 *
 * @param onTurn called at the end of each turn of the event loop, with the time at which its work began
 * @throws InvalidJson | ValidationFailed | SnapshotTooLarge
 */
export async function parseLines (file: Buffer, onTurn: (began: number) => void = () => {}): Promise<FileLines> {
  const lines = new FileLines()
  let began = performance.now()
  let turnEnd = BYTES_PER_TURN
  for (let start = 0; start < file.length;) {
    if (start >= turnEnd) {
      onTurn(began)
      await nextTurn()
      began = performance.now()
      turnEnd = start + BYTES_PER_TURN
    }
    const newline = file.indexOf('\n', start)
    const end = newline === -1 ? file.length : newline
    lines.add(file.subarray(start, end))
    start = end + 1
  }
  return lines
}

/** The schema of a file. */
export const Lines = Type.String({ description: 'Lines of JSON, each a `StoreRow`.', example: EXAMPLE })

/** Returns the records of a snapshot as a file. */
export async function linesOfSnapshot (read: Read, account: number, snapshot: number): Promise<string> {
  return await linesOf(rowsOfSnapshot(read, account, snapshot))
}

/** Returns the records of a store as a file. @throws StoreTooLarge */
export async function linesOfStore (read: Read, account: number): Promise<string> {
  return await linesOf(rowsOfStore(read, account))
}

async function linesOf (rows: AsyncIterable<StoredRow>): Promise<string> {
  const lines: string[] = []
  for await (const { row } of recordsOf(rows)) lines.push(`${JSON.stringify(row)}\n`)
  return lines.join('')
}
