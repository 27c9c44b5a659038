// A process that delivers as `petstore worker` does, with short leases: `DATABASE_URL`, `LEASE_MS` and
// `DELIVERY_TIMEOUT_MS` come from the environment.

import Fastify from 'fastify'
import { readConfig } from '../../src/config.ts'
import { database } from '../../src/database/plugin.ts'
import { delivery } from '../../src/deliveries/plugin.ts'
import { commitOptions, createResources } from '../../src/resources.ts'

const { DATABASE_URL = '', LEASE_MS, DELIVERY_TIMEOUT_MS } = process.env

const app = Fastify({ logger: false })
await app.register(database, {
  url: DATABASE_URL, pool: 10, queueLimit: 5_000, timeout: 60_000, ...commitOptions(createResources(readConfig({})))
})
await app.register(delivery, {
  allowPrivate: true,
  leaseMs: Number(LEASE_MS),
  requestTimeoutMs: Number(DELIVERY_TIMEOUT_MS)
})
await app.ready()
// The database's connections do not keep the process alive on SQLite.
setInterval(() => {}, 60_000)
