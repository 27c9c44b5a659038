import { defineError, type ErrorClass } from '../errors.ts'

export const FaultNotFound = defineError('fault_not_found', 'Your account has no fault with this id.', 404)
export const SnapshotNotFound = defineError('snapshot_not_found', 'Your account has no snapshot with this id.', 404)
export const UnknownApiKey = defineError('unknown_api_key', 'keyId names no API key of your account.', 409)
export const FaultLimitReached = defineError(
  'fault_limit_reached', 'An account can have %s open faults. Delete one, or delete all with DELETE /lab/faults.', 409,
  100)
export const SnapshotLimitReached = defineError(
  'snapshot_limit_reached', 'An account can have %s snapshots. Delete one before you take another.', 409, 20)
export const SnapshotTooLarge = defineError(
  'snapshot_too_large',
  '%s has more than %s records or 8 MB, which is the most that a snapshot can hold.', 409, 'The store', 10000)
export const StoreTooLarge = defineError(
  'store_too_large', '%s, which is too much for this operation. Open another account instead: POST /accounts.', 409,
  'The store has more than 10000 records or 8 MB of text')

/** One class for each status of a response by a fault. */
const injected = (status: number): ErrorClass => defineError(
  'injected_fault', 'Lab fault %s replaced this response.', status, 12)

/** By status. */
export const INJECTED: Record<number, ErrorClass> =
  Object.fromEntries([408, 429, 500, 502, 503, 504].map((status) => [status, injected(status)]))
