import type { Config } from '../config.ts'
import type { Operation } from './document.ts'
import { sometimes } from './headers.ts'

type Limits = Pick<Config, 'RATE_LIMIT_PER_ACCOUNT' | 'RATE_LIMIT_SIGNUP' | 'RATE_LIMIT_FAILED_AUTH'>

/**
 * Adds the fields of the rate limits to the responses that can have them with these settings. On every response they
 * would be a tenth of the document, and most services have no limit.
 */
export function announceLimits ({ security, responses }: Operation, limits: Limits): void {
  const isOpen = security?.length === 0
  for (const [status, answer] of Object.entries(responses)) {
    const limit = isOpen
      ? limits.RATE_LIMIT_SIGNUP
      : limits.RATE_LIMIT_PER_ACCOUNT + (status === '401' ? limits.RATE_LIMIT_FAILED_AUTH : 0)
    if (limit === 0) continue
    const fields = { RateLimit: sometimes('RateLimit'), 'RateLimit-Policy': sometimes('RateLimit-Policy') }
    answer.headers = { ...fields, ...answer.headers }
  }
}
