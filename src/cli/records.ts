import { printable } from '../monitoring/printable.ts'

/** The option of each command that prints records. */
export const JSON_OPTION = ['--json', 'print JSON'] as const

export interface JsonOption { json?: boolean }

/** Prints records: as one JSON array, or each on one or more lines of its own. */
export async function printRecords<T> (
  records: AsyncIterable<T> | Iterable<T>, json: boolean, format: (record: T) => string | string[]
): Promise<void> {
  const all: T[] = []
  for await (const record of records) {
    if (json) all.push(record)
    else for (const line of [format(record)].flat()) console.log(printable(line))
  }
  if (json) console.log(JSON.stringify(all, null, 2))
}
