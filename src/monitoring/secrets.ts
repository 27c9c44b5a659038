/** A secret of this service: an API key, whose first 8 characters may be shown, or the secret of a webhook. */
const SECRET = /(psk_[0-9a-z]{8}|psk|whsec)_[\w%+/=-]+/gi

/** Replaces the secrets of this service that a text contains. */
export function hideSecrets (text: string): string {
  return text.replace(SECRET, '$1_[hidden]')
}
