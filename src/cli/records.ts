/** The option of each command that prints records. */
export const JSON_OPTION = ['--json', 'print records as JSON'] as const

/** Prints records: as one JSON array, or each on a line of its own. */
export async function printRecords<T> (
  records: AsyncIterable<T>, json: boolean, format: (record: T) => string
): Promise<void> {
  if (!json) {
    for await (const record of records) console.log(format(record))
    return
  }
  const all: T[] = []
  for await (const record of records) all.push(record)
  console.log(JSON.stringify(all, null, 2))
}

/** Reads all pages of a list. */
export async function * allPages<T> (
  readPage: (after: number | undefined) => Promise<{ records: string, next: string | number | null }>
): AsyncGenerator<T> {
  let after: number | undefined
  do {
    const { records, next } = await readPage(after)
    yield * JSON.parse(records) as T[]
    after = next === null ? undefined : Number(next)
  } while (after !== undefined)
}
