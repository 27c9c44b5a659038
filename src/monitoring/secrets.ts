/** A secret of this service: an API key, or the secret of a webhook. */
const SECRET = /(psk|whsec)_[\w%+/=-]+/gi

/** Replaces the secrets of this service that a text contains. */
export function hideSecrets (text: string): string {
  // Most texts have no underscore, and need no search.
  return text.includes('_') ? text.replace(SECRET, '$1_[hidden]') : text
}
