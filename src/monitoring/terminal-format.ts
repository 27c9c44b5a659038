import type { DestinationStream } from 'pino'

interface Line {
  msg?: string
  level: number
  requestId?: string
  method?: string
  path?: string
  status?: number
  incomplete?: boolean
  code?: string
  ms?: number
}

/** Pino's level `warn`. From this level on, a line includes the id of its request. */
const WARN_LEVEL = 40

/** Returns a destination with readable lines instead of JSON if standard output is a terminal, else `undefined`. */
export async function terminalDestination (): Promise<DestinationStream | undefined> {
  if (!process.stdout.isTTY) return undefined
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    // Keeps log lines in order with the output on standard error.
    sync: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,requestId,method,route,path,status,incomplete,code,ms,account,key,address,worker,process,end',
    messageFormat: (line) => formatMessage(line as unknown as Line)
  })
}

function formatMessage ({ msg = '', level, requestId, method, path, status, incomplete, code, ms }: Line): string {
  const outcome = [status ?? [], incomplete ? 'incomplete' : [], code ?? []]
  const text = msg === 'request' ? [method, path, outcome, ms, 'ms'].flat(2).join(' ') : msg
  return level >= WARN_LEVEL && requestId !== undefined ? `${text} (request ${requestId})` : text
}
