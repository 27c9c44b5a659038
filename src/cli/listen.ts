import { setMaxListeners } from 'node:events'
import { InvalidArgumentError, type Command } from 'commander'
import type { Client, Event } from '../client/client.ts'
import { printable } from '../monitoring/printable.ts'
import { OperationalError } from '../operational-error.ts'
import { id } from './parse-arguments.ts'
import { addServiceOptions, newestEvent, withService, type ServiceOptions } from './service-client.ts'

interface ListenOptions extends ServiceOptions { forwardTo: string, types?: string[], from?: number, secret?: string }

export function addListen (program: Command): void {
  addServiceOptions(program.command('listen')
    .description('forward the events of an account to an address, signed as for a webhook, until you stop it')
    .requiredOption('--forward-to <address>', 'http or https address that receives the events', httpUrl)
    .option('--types <patterns>', 'only these types, such as order.*,message.created', patterns)
    .option('--from <event>', 'number of the first event; default: the next one that happens', id)
    .option('--secret <secret>', 'whsec_ and 24 to 64 bytes in base64; default: a new one', signingSecret))
    .action(async (options: ListenOptions) => {
      await withService(options, process.env, async (client) => { await listen(client, options) })
    })
}

async function listen (client: Client, { forwardTo, types, from, secret }: ListenOptions): Promise<void> {
  const { createWebhookClient } = await import('../deliveries/http-client.ts')
  const { webhookSecret } = await import('../webhooks/commands.ts')
  const { createForwarder } = await import('./forwarder.ts')
  const stop = new AbortController()
  // Each event that waits for a retry adds a listener.
  setMaxListeners(0, stop.signal)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => { stop.abort() })
  const print = (line: string): void => { console.log(printable(line)) }
  const { id: account } = await client.getAccount()
  const after = from === undefined ? await newestEvent(client) : from - 1
  const signing = secret ?? webhookSecret()
  print(`Secret: ${signing}`)
  print(`Forwarding the events of account ${account} after ${after} to ${forwardTo}`)
  const sender = createWebhookClient({ allowPrivate: true })
  const forward = createForwarder({ client: sender, url: forwardTo, secret: signing, account, print, stop })
  try {
    for await (const event of client.followEvents({ after, signal: stop.signal })) {
      // The service begins with the next event if there is none after that number yet.
      if (event.id <= after) continue
      if (types === undefined || types.some((pattern) => matches(event, pattern))) await forward(event)
    }
  } finally {
    stop.abort()
    sender.close()
  }
  if (stop.signal.reason instanceof OperationalError) throw stop.signal.reason
}

function matches ({ type }: Event, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}

function patterns (text: string): string[] {
  const list = text.split(',')
  if (list.every((pattern) => /^([a-z_]+\.)*([a-z_]+|[a-z_]*\*)$/.test(pattern))) return list
  throw new InvalidArgumentError('It must be types of events, separated by commas. An asterisk may end each.')
}

function httpUrl (text: string): string {
  if (/^https?:/i.test(text) && URL.canParse(text)) return text
  throw new InvalidArgumentError('It must be an address such as http://localhost:4000/hooks.')
}

/** As the Standard Webhooks specification says. */
function signingSecret (text: string): string {
  const bytes = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text)?.[1]
  const length = bytes === undefined ? 0 : Buffer.from(bytes, 'base64').length
  if (length >= 24 && length <= 64) return text
  throw new InvalidArgumentError('It must be whsec_ and 24 to 64 bytes in base64.')
}
