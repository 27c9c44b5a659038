import type { FastifyPluginAsync } from 'fastify'
import { clockRoutes } from './clock-routes.ts'
import { faultRoutes } from './fault-routes.ts'
import { importRoutes } from './import-routes.ts'
import { snapshotRoutes } from './snapshot-routes.ts'
import { stateRoutes } from './state-routes.ts'

export const labRoutes: FastifyPluginAsync = async function labRoutes (app) {
  await app.register(faultRoutes)
  await app.register(clockRoutes)
  await app.register(stateRoutes)
  await app.register(importRoutes)
  await app.register(snapshotRoutes)
}
