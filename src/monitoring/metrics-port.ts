import { OperationalError } from '../operational-error.ts'

/** Explains why the port for metrics cannot be opened. */
export function explainListenError (error: NodeJS.ErrnoException, port: number): Error {
  const remedy = 'Set METRICS_PORT to another port, or leave it empty.'
  if (error.code === 'EADDRINUSE') return new OperationalError(`METRICS_PORT ${port} is in use. ${remedy}`)
  if (error.code === 'EACCES') {
    return new OperationalError(`This process has no permission to listen on METRICS_PORT ${port}. ${remedy}`)
  }
  return error
}
