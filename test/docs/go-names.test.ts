// Only on SQLite: the document is the same on both databases.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { startApp } from '../support/app.ts'

t.test('the page renames every schema that has the name of a constructor in Go', async (t) => {
  const { openAccount } = await startApp(t)
  const { body } = await (await openAccount()).get('/openapi.json')
  const names = Object.keys(body.components.schemas)
  const taken = names.filter((name) => names.includes(`New${name}`))
  const page = readFileSync('docs/how-to/generate-a-client.md', 'utf8')
  t.same([...page.matchAll(/New(\w+)=\1Input/g)].map(([, name]) => name).sort(), taken.sort())
})
