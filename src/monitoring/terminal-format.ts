import type { DestinationStream } from 'pino'

interface Line { msg?: string, level: number, requestId?: string, method?: string, route?: string, status?: number, ms?: number }

/** From this level on (pino's `warn`) a line says which request it is about. */
const WARN = 40

/** Where lines for a person go: words instead of JSON when standard output is a terminal, else `undefined`. */
export async function terminalDestination (): Promise<DestinationStream | undefined> {
  if (!process.stdout.isTTY) return undefined
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    // In the order in which they come, with what is written to standard error.
    sync: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,requestId,method,route,status,ms',
    messageFormat: (line) => describe(line as unknown as Line)
  })
}

function describe ({ msg = '', level, requestId, method, route = '(no route)', status, ms }: Line): string {
  const text = msg === 'request' ? `${method} ${route} ${status} ${ms} ms` : msg
  return level >= WARN && requestId !== undefined ? `${text} (request ${requestId})` : text
}
