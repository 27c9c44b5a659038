import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { LISTEN_BACKLOG } from './connections.ts'

/** A machine without IPv6, or without IPv4. */
const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT']

/**
 * With `HOST=localhost`, accepts connections at both loopback addresses, because clients try either first. The server
 * listens at one. This plugin gives it the connections of the other, so that each limit of the server and the shutdown
 * apply to them. Without a `serverFactory`, Fastify would open a second server, to which no setting of the first
 * applies. Register this plugin last: connections must end before the plugins that answer their requests are closed.
 */
export const localhost = fp(async function localhost (app: FastifyInstance, { HOST }: Pick<Config, 'HOST'>) {
  if (HOST !== 'localhost') return
  // With these options, HTTP servers of Node create their sockets.
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket: Socket) => {
    app.server.emit('connection', socket)
  })
  let opened: Promise<void> | undefined
  let isOpen = false
  let closed: Promise<unknown> | undefined

  async function listen (): Promise<void> {
    const { address, port } = app.server.address() as AddressInfo
    const host = address === '::1' ? '127.0.0.1' : '::1'
    try {
      await once(listener.listen({ host, port, backlog: LISTEN_BACKLOG }), 'listening')
      app.listeners.add(listener)
      isOpen = true
      app.log.info(`Server listening at http://${host === '::1' ? '[::1]' : host}:${port}`)
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (!NO_SUCH_ADDRESS.includes(code)) app.log.warn({ err: error }, `cannot listen at ${host}, port ${port}`)
    }
  }

  app.addHook('onListen', async () => { await (opened = listen()) })
  app.addHook('preClose', async () => {
    await opened
    if (!isOpen) return
    // Also if it accepts no more connections already: those that it has accepted must end.
    closed = once(listener, 'close')
    listener.close()
  })
  app.addHook('onClose', async () => { await closed })
}, { name: 'localhost', dependencies: ['graceful-shutdown'] })
