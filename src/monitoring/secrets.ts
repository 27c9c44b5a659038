/** A secret of this service: an API key, or the secret of a webhook. */
const SECRET = /(psk|whsec)_[\w%+/=-]+/gi

/** Replaces the secrets of this service that a text contains. */
export function hideSecrets (text: string): string {
  return text.replace(SECRET, '$1_[hidden]')
}
