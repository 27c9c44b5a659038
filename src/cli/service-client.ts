import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import { ValidationFailed } from '../errors.ts'
import { OperationalError } from '../operational-error.ts'

/** The options of each command that calls a service over HTTP. */
export interface ServiceOptions { url?: string, apiKey?: string }

const DEFAULT_URL = 'http://127.0.0.1:3000'

export function addServiceOptions (command: Command): Command {
  return command
    .option('--url <address>', `address of the service; default: PETSTORE_URL, or ${DEFAULT_URL}`)
    .option('--api-key <key>', 'API key of the account; default: PETSTORE_API_KEY, which other users cannot see')
}

/**
 * Calls a function with a client of the service.
 *
 * @throws OperationalError when the service refuses a request, or does not respond
 */
export async function withService (
  options: ServiceOptions, env: NodeJS.ProcessEnv, use: (client: Client) => Promise<void>
): Promise<void> {
  // An empty variable counts as not set.
  const { url = env['PETSTORE_URL'] || DEFAULT_URL, apiKey = env['PETSTORE_API_KEY'] ?? '' } = options
  if (apiKey === '') throw new ValidationFailed('Set PETSTORE_API_KEY to an API key, or use --api-key')
  const { ConnectionError, createClient, PetstoreError } = await import('../client/client.ts')
  const client = orInvalid(() => createClient({ url, apiKey }))
  try {
    await use(client)
  } catch (error) {
    if (error instanceof PetstoreError) throw new OperationalError(`The service responded: ${error.message}`)
    if (error instanceof ConnectionError) throw new OperationalError(`${error.message}: ${url}`)
    throw error
  }
}

/** @throws ValidationFailed when the address or the key can be none */
function orInvalid<T> (create: () => T): T {
  try {
    return create()
  } catch (error) {
    throw new ValidationFailed((error as Error).message)
  }
}

/** Returns the number of the newest event, 0 before the first. */
export async function newestEvent (client: Client): Promise<number> {
  const { response } = await client.listEvents({ limit: 1 }).withResponse()
  return Number(response.headers.get('event-id'))
}
