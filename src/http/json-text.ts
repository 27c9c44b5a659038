import { isUtf8 } from 'node:buffer'
import secureJson from 'secure-json-parse'
import { InvalidJson, ValidationFailed } from '../errors.ts'

/** The media type of lines of JSON. */
export const NDJSON = 'application/x-ndjson'

/** A message of secure-json-parse. Messages of V8 are never sent: they quote the body, which may hold secrets. */
const FORBIDDEN_MEMBER = 'Object contains forbidden prototype property'

/**
 * Parses the bytes of a JSON text.
 *
 * @param place where the text is in the body, for messages
 */
export function parseJson (body: Buffer, place = ''): unknown {
  if (body.length === 0) throw new InvalidJson(`${place}it is empty`)
  if (!isUtf8(body)) throw new InvalidJson(`${place}its bytes are not UTF-8`)
  try {
    return secureJson.parse(body.toString('utf8'), undefined, { protoAction: 'error', constructorAction: 'ignore' })
  } catch (error) {
    const { message } = error as Error
    if (message === FORBIDDEN_MEMBER) throw new ValidationFailed(`${place}"__proto__" is not allowed`)
    throw new InvalidJson(place + describeSyntaxError(message))
  }
}

/** Returns the position that V8 reports, without the part of the body that V8 quotes. */
function describeSyntaxError (message: string): string {
  const [position] = /position \d+/.exec(message) ?? []
  return position === undefined ? 'it is incomplete or contains a syntax error' : `see ${position}`
}
