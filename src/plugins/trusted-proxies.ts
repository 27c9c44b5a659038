import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { forwardedAddresses } from '../http/forwarded-addresses.ts'

/** Corrects `X-Forwarded-For`, from which Fastify takes `request.ip`. Register it before any use of the address. */
export const trustedProxies = fp(async function trustedProxies (
  app: FastifyInstance, { TRUST_PROXY }: Pick<Config, 'TRUST_PROXY'>
) {
  if (parseTrustProxy(TRUST_PROXY) === false) return
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const field = headers['x-forwarded-for']
    if (field !== undefined) headers['x-forwarded-for'] = forwardedAddresses(String(field))
    done()
  })
}, { name: 'trusted-proxies' })

/** Returns what Fastify takes for a setting: whether to trust all proxies, their addresses, or a test by hops. */
export function parseTrustProxy (setting: string): boolean | string | ((address: string, hop: number) => boolean) {
  if (setting === 'true') return true
  if (/^\d+$/.test(setting)) return (_address, hop) => hop < Number(setting)
  return setting === 'false' || setting === '' ? false : setting
}
