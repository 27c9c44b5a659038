import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { timeText } from '../database/account-clocks.ts'

/**
 * Adds `Petstore-Clock` to the responses of a scope: the time of the account, if its clock was moved. Any route that
 * verifies an API key gets the header, also one that is not an operation. Register it before faults: some send the
 * response themselves.
 */
export const clockHeader = fp(async function clockHeader (app: FastifyInstance) {
  const { clocks } = app
  app.addHook('onSend', (request, reply, payload, done) => {
    const account = (request.auth as FastifyRequest['auth'] | null)?.account ?? null
    if (clocks.offsetOf(account) > 0) reply.header('petstore-clock', timeText(clocks.now(account)))
    done(null, payload)
  })
}, { name: 'clock-header', dependencies: ['database', 'authentication'] })
