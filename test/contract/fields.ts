/** Header fields of requests. */

export const ifMatch = (tag: string | undefined): Record<string, string> => ({ 'if-match': String(tag) })
export const ifNoneMatch = (tag: string | undefined): Record<string, string> => ({ 'if-none-match': String(tag) })
export const key = (key: string): { 'idempotency-key': string } => ({ 'idempotency-key': key })
