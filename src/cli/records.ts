/** The option of each command that prints records. */
export const JSON_OPTION = ['--json', 'print JSON'] as const

export interface JsonOption { json?: boolean }

/** Prints records: as one JSON array, or each on a line of its own. */
export async function printRecords<T> (
  records: AsyncIterable<T> | Iterable<T>, json: boolean, format: (record: T) => string
): Promise<void> {
  const all: T[] = []
  for await (const record of records) {
    if (json) all.push(record)
    else console.log(format(record))
  }
  if (json) console.log(JSON.stringify(all, null, 2))
}
