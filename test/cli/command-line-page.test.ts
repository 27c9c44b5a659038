// Only on SQLite: runs the commands of the page about the command line, which are for SQLite.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { build, CLI, folder, launch, npmSettings, ROOT } from '../support/cli.ts'
import { database, emptyDatabase } from '../support/database.ts'

t.before(build)

const page = readFileSync(join(ROOT, 'docs/reference/command-line.md'), 'utf8')
const [, block = ''] = /```sh\n([^]*?)```/.exec(page) ?? []

t.test(
  'the commands of the page work in this order, on a new database',
  { skip: database !== 'sqlite' && 'as on SQLite, but for backup' },
  async (t) => {
    const env = { ...npmSettings(), DATABASE_URL: await emptyDatabase(t) }
    const commands = block.trim().split('\n')
    t.ok(commands.length > 5, 'there are commands')
    const files = folder(t)
    for (const [i, command] of commands.entries()) {
      // npx takes seconds to find the installed command, so only the first command uses it.
      const direct = i === 0 ? command : command.replace('npx --no petstore', `"${process.execPath}" "${CLI}"`)
      const { code, err } = await run(direct.replace(/(\S+\.(?:yaml|db))$/, join(files, '$1')))
      t.equal(code, 0, `${command}\n${err}`)
    }

    async function run (command: string) {
      return await launch(t, 'bash', ['-c', command], { cwd: ROOT, env }).ended
    }
  }
)
