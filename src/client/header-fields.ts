type FieldValue = string | number | readonly string[] | null | undefined

/**
 * Header fields as Fetch, Node or a program has them, of any implementation. A value that is `undefined` counts as not
 * given.
 */
export type HeadersLike =
  | Iterable<readonly [string, FieldValue]>
  | { get: (name: string) => string | null | undefined }
  | { [name: string]: FieldValue }

/** Header fields by their names in lower case. */
export type HeaderFields = Map<string, string>

/** Characters of a field's name, and of its value (RFC 9110 sections 5.1 and 5.5). */
const NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Adds header fields to others, which they replace. `null` removes a field.
 *
 * @throws {TypeError} if HTTP does not allow a name or a value
 */
export function addFields (fields: HeaderFields, headers: HeadersLike | undefined): void {
  for (const [name, value] of entriesOf(headers)) {
    if (value === undefined) continue
    if (!NAME.test(name)) throw new TypeError(`No header field has the name ${name}`)
    if (value === null) {
      fields.delete(name.toLowerCase())
      continue
    }
    const text = Array.isArray(value) ? value.join(', ') : String(value)
    if (!VALUE.test(text)) throw new TypeError(`The header field ${name} has characters that HTTP does not allow`)
    fields.set(name.toLowerCase(), text)
  }
}

/** Returns the value of a header field, whatever the case of its name. Several values are separated by a space. */
export function readField (headers: HeadersLike, name: string): string | undefined {
  if (!isIterable(headers) && typeof (headers as { get?: unknown }).get === 'function') {
    return (headers as Headers).get(name) ?? undefined
  }
  const entry = entriesOf(headers).find(([other]) => other.toLowerCase() === name)
  const value = entry?.[1] ?? undefined
  return Array.isArray(value) ? value.join(' ') : value as string | undefined
}

function entriesOf (headers: HeadersLike | undefined): Array<readonly [string, FieldValue]> {
  if (headers === undefined) return []
  if (typeof headers !== 'object' || headers === null) throw new TypeError('Header fields must be an object')
  return isIterable(headers) ? [...headers] : Object.entries(headers)
}

function isIterable (headers: HeadersLike): headers is Iterable<readonly [string, FieldValue]> {
  return typeof (headers as { [Symbol.iterator]?: unknown })[Symbol.iterator] === 'function'
}
