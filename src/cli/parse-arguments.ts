import { InvalidArgumentError } from 'commander'

/** Returns a parser of whole numbers within limits. */
export function parseInteger (minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (!/^\d+$/.test(text) || number < minimum || number > maximum) {
      throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}.`)
    }
    return number
  }
}

/** Parses an id. */
export const id = parseInteger(1, Number.MAX_SAFE_INTEGER)
