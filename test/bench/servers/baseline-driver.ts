// `baseline`: the measured routes on the bare driver.

import { openPostgresql } from './postgresql.ts'
import { serve } from './service.ts'
import { openSqlite } from './sqlite.ts'

const url = process.env['DATABASE_URL']!
await serve(url.startsWith('file:') ? openSqlite(url.slice('file:'.length)) : openPostgresql(url))
