import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * API keys: `psk_`, 8 characters that may be shown (the prefix), `_`, a secret of 32 characters, and
 * a checksum of 6. The start makes a leaked key recognisable; the checksum refuses a typo without a
 * look into the database.
 */
export interface Credential {
  /** The whole key: shown once, stored nowhere. */
  apiKey: string
  prefix: string
  /** SHA-256 of the key, hex: what the database holds and finds it by. */
  hash: string
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORM = /^psk_([0-9A-Za-z]{8})_[0-9A-Za-z]{32}([0-9A-Za-z]{6})$/

/** Time until a process reads a cached key again. The contract revokes a key in every process within 5 s. */
export const KEY_CACHE_TTL_MS = 4_000

export function createCredential (): Credential {
  const prefix = randomText(8)
  const body = `psk_${prefix}_${randomText(32)}`
  const apiKey = body + checksum(body)
  return { apiKey, prefix, hash: hashOf(apiKey) }
}

/** Whether a text is a key of this service, to judge by its form and its checksum alone. */
export function isCredential (text: string): boolean {
  const [, , sum] = FORM.exec(text) ?? []
  return sum !== undefined && timingSafeEqual(Buffer.from(sum), Buffer.from(checksum(text.slice(0, -6))))
}

/** Returns the part of a key of this service that may be shown. */
export function prefixOf (apiKey: string): string {
  return apiKey.slice('psk_'.length, 'psk_'.length + 8)
}

/** What the database holds of a key, and finds it by. */
export function hashOf (apiKey: string): string {
  return hash('sha256', apiKey, 'hex')
}

/** CRC-32 in base 62: six digits hold all of its values. */
function checksum (body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < 6; i++) {
    text = ALPHABET[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** Bytes above 247 are dropped, so that each of the 62 characters is as likely as any other. */
function randomText (length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
    }
  }
  return text
}
