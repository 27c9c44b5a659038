/** An error whose message is shown to the owner of the webhook. */
export class ExplainedError extends Error {}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'The address refused the connection',
  ECONNRESET: 'The connection was closed without a response',
  EPIPE: 'The connection was closed without a response',
  ETIMEDOUT: 'The address cannot be reached',
  EHOSTUNREACH: 'The address cannot be reached',
  ENETUNREACH: 'The address cannot be reached',
  ENOTFOUND: 'The host name cannot be resolved',
  EAI_AGAIN: 'The host name cannot be resolved'
}

/** Explains an error to the owner of the webhook, without details of the service's own network. */
export function explain (error: unknown): string {
  if (error instanceof ExplainedError) return error.message
  const { code = '' } = error as NodeJS.ErrnoException
  const [first] = (error as { errors?: NodeJS.ErrnoException[] }).errors ?? []
  const known = REASONS[code] ?? REASONS[first?.code ?? '']
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'The response is not valid HTTP'
  return /CERT|TLS|SSL|SIGNED/.test(code) ? `The connection is not secure: ${code}` : 'The request failed'
}
