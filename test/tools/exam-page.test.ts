import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PAPERS } from '../../src/exam/papers.ts'
import { build, petstore, ROOT } from '../support/cli.ts'

// The adapters of the page about the exam, as a reader saves and examines them.

t.before(build)

const page = readFileSync(join(ROOT, 'docs/how-to/examine-your-client.md'), 'utf8')

/** The adapters by the kind of their block: their file, the programs that they need, and whether they pass. */
const ADAPTERS = {
  js: { file: 'adapter.mjs', needs: ['node'], passes: true },
  python: { file: 'adapter.py', needs: ['python3'], passes: false },
  perl: { file: 'adapter.pl', needs: ['perl'], passes: false },
  bash: { file: 'adapter.sh', needs: ['bash', 'curl', 'jq'], passes: true }
}

const blockOf = (kind: string): string => new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)![1]!

/** Returns a pattern of a text in which `…` stands for what differs each time. */
function pattern (text: string): RegExp {
  return new RegExp(`^${text.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^]+?')}$`)
}

t.test('the adapters of the page get the verdicts that it says', async (t) => {
  // Below the project's root, where Node resolves petstore-lab/client to this package.
  const cwd = mkdtempSync(join(ROOT, '.test-exam-'))
  t.teardown(() => { rmSync(cwd, { recursive: true, force: true }) })
  const commands = blockOf('sh').trim().split('\n')
  t.equal(commands.length, Object.keys(ADAPTERS).length)
  for (const [kind, { file, needs, passes }] of Object.entries(ADAPTERS)) {
    await t.test(file, async (t) => {
      const missing = needs.find((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      if (missing !== undefined) {
        t.pass('', { skip: `there is no ${missing}` })
        return
      }
      writeFileSync(join(cwd, file), blockOf(kind))
      const command = commands.find((command) => command.includes(file))!
      const [, only = '', client = ''] = /^npx --no petstore exam --only (\S+) --client "(.*)"$/.exec(command) ?? []
      const { code, out, err } = await petstore(t, ['exam', '--only', only, '--client', client], { cwd })
      t.equal(code, passes ? 0 : 1, out + err)
      if (kind === 'python') t.match(out, pattern(blockOf('text')))
    })
  }
})

t.test('an adapter has ten lines', async (t) => {
  for (const kind of Object.keys(ADAPTERS)) {
    const lines = blockOf(kind).split('\n').filter((line) => line !== '')
    t.ok(lines.length <= 10, `${lines.length} lines of ${kind}`)
  }
})

t.test('the page has all papers and all tasks', async (t) => {
  const rowsOf = (heading: string): string[] => {
    const [section = ''] = page.split(`\n## ${heading}\n`)[1]!.split('\n## ')
    return [...section.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name!)
  }
  t.strictSame(rowsOf('Papers'), PAPERS.map(({ name }) => name))
  const folder = join(ROOT, 'src/exam/papers')
  const code = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8')).join('\n')
  const tasks = new Set([...code.matchAll(/\.ask\('(\w+)'/g)].map(([, task]) => task!))
  t.strictSame(rowsOf('Tasks').sort(), [...tasks].sort())
})
