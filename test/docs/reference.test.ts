// Only on SQLite: runs commands and samples of the pages over HTTP.

import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { referencePages } from '../../scripts/reference.ts'
import { database } from '../support/database.ts'

const FOLDER = new URL('../../docs/reference/', import.meta.url)
const skip = database !== 'sqlite' && 'the pages name no database of their own'

t.test('docs/reference is as npm run reference writes it', { skip }, async (t) => {
  const pages = await referencePages()
  const textOf = (name: string): string => readFileSync(new URL(name, FOLDER), 'utf8')
  const generated = readdirSync(FOLDER).filter((name) => textOf(name).startsWith('<!-- Generated'))
  t.strictSame(generated.sort(), Object.keys(pages).sort())
  for (const [name, text] of Object.entries(pages)) {
    const skip = name === 'metrics.md' && process.platform !== 'linux' && 'other systems lack some metrics of a process'
    t.equal(
      textOf(name),
      text,
      `docs/reference/${name}: npm run reference brings it up to date`,
      { skip }
    )
  }
})
