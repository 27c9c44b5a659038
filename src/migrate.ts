import { readConfig } from './config.ts'
import { migrate } from './database/migrate.ts'
import { reasonOf } from './startFailure.ts'

/** `npm run migrate`, a process of its own: brings the database of DATABASE_URL up to date and says what it did. */
try {
  const applied = await migrate(readConfig(process.env).DATABASE_URL)
  console.log(applied.length === 0 ? 'The database is up to date.' : applied.map((name) => `Applied ${name}`).join('\n'))
} catch (error) {
  console.error(reasonOf(error))
  process.exitCode = 1
}
