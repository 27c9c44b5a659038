import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { createAccountStates, type AccountStates } from './account-states.ts'
import { createAroundCall } from './delivery-faults.ts'
import { createHeldBytes } from './held-bytes.ts'
import { addRequestFaults } from './request-faults.ts'
import { findMovedClocks } from './queries.ts'

/** Time after which a process forgets a deleted account: the last response to it shows its clock. */
const FORGET_MS = 5_000

declare module 'fastify' {
  interface FastifyInstance {
    /** The lab; only where the setting LAB is true. */
    lab?: {
      states: AccountStates
      /** The ids of the operations that faults can name. */
      operations: Set<string>
    }
  }
}

/** Adds faults and clocks to the operations of a scope, and faults to the calls of webhooks. */
export const labHooks: FastifyPluginAsync = fp(async function labHooks (app: FastifyInstance) {
  const states = createAccountStates(app)
  const operations = new Set<string>()
  app.decorate('lab', { states, operations })
  app.addHook('onRoute', ({ schema }) => {
    if (schema?.operationId !== undefined) operations.add(schema.operationId)
  })
  const held = createHeldBytes()
  addRequestFaults(app, states, held)
  app.interceptCalls?.(createAroundCall(app, states, held))
  app.onChange(({ lab: changed = [], accounts: deleted = [] }) => {
    changed.forEach(refresh)
    for (const account of deleted) if (states.knows(account)) setTimeout(refresh, FORGET_MS, account).unref()
  })

  function refresh (account: number): void {
    states.refresh(account).catch((error: unknown) => {
      app.log.warn({ err: error }, 'cannot read the state of the lab; the next poll reads it')
    })
  }

  app.addHook('onReady', states.start)
  app.addHook('preClose', async () => { states.stop() })
}, { name: 'lab-hooks', dependencies: ['database', 'authentication'] })

/** Time after which clocks that could not be read are read again, as the lab does. */
const RETRY_MS = 400

/** Keeps the clocks that were moved while the lab was on: an account's time never goes back. */
export const movedClocks: FastifyPluginAsync = fp(async function movedClocks (app: FastifyInstance) {
  let isClosing = false
  let timer: NodeJS.Timeout | undefined

  async function readClocks (): Promise<void> {
    try {
      for (const { account, offsetSeconds } of await findMovedClocks(app.read)) {
        app.clocks.advance(account, offsetSeconds * 1000)
      }
    } catch (error) {
      if (isClosing) return
      app.log.warn({ err: error }, 'cannot read the clocks of accounts; they are read again')
      timer = setTimeout(() => { void readClocks() }, RETRY_MS).unref()
    }
  }

  app.addHook('onReady', readClocks)
  app.addHook('preClose', async () => {
    isClosing = true
    clearTimeout(timer)
  })
}, { name: 'moved-clocks', dependencies: ['database'] })
