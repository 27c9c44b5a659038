/**
 * The other worker processes that share the port of this one (`PROCESSES`). In a service of one process,
 * `app.siblings` is undefined.
 */
export interface Siblings {
  /** Calls the handlers of the others. Resolves when all have ended, or when one takes more than a second. */
  tell: (topic: string, value: unknown) => Promise<void>
  /** Sends a value to the primary process. */
  report: (topic: string, value: unknown) => Promise<void>
  /** Sets what this process does when another one, or the primary, calls. */
  onCall: (topic: string, handler: CallHandler) => void
}

export type CallHandler = (value: unknown) => Promise<unknown>

declare module 'fastify' {
  interface FastifyInstance {
    siblings?: Siblings
  }
}
