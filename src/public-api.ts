/** The public API of the package: the service as a Fastify instance, its settings, and its migrations. */
export { buildApp } from './app.ts'
export { ConfigError, readConfig, type Config } from './config.ts'
export { pendingMigrations } from './database/migrations/history.ts'
export { migrate } from './database/migrations/migrate.ts'
export { createStore, type Store, type StoreOptions } from './create-store.ts'
