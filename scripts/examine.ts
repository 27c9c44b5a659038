// npm run examine: holds the exam for each client in examples/exam, and writes the page of the results.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs/reference/exam-results.md')
const EXAMPLES = 'examples/exam'
const TOOLS = join(ROOT, 'test/tools')

const NODE = `"${process.execPath}"`
const MARKS: Record<string, string> = { passed: '✔', failed: '✖', 'not taken': '–' }
const NOTE = '<!-- Written by `npm run examine`. -->'

export interface Adapter {
  name: string
  /** A sentence about the client. */
  about: string
  /** The adapter, below the folder of the examples. */
  file: string
  /** A program that the client needs, with arguments that only show its version. */
  needs?: [program: string, ...args: string[]]
  /** Returns the command that starts the adapter. Files for it are written to a temporary folder. */
  prepare: (folder: string) => Promise<string>
}

export interface Report {
  passed: boolean
  papers: Array<{ paper: string, goodClient: string, verdict: string, findings: Array<{ text: string }> }>
}

export const ADAPTERS: Adapter[] = [
  {
    name: 'petstore-lab/client',
    file: 'petstore-client.mjs',
    about: 'The [client](../how-to/use-the-client.md) of this repository.',
    prepare: async () => `${NODE} ${EXAMPLES}/petstore-client.mjs`
  },
  {
    name: 'fetch',
    file: 'naive-fetch.mjs',
    about: 'A client as many are written, with `fetch` alone.',
    prepare: async () => `${NODE} ${EXAMPLES}/naive-fetch.mjs`
  },
  {
    name: 'Python',
    file: 'python/adapter.py',
    about: 'A client with `urllib`, by somebody who has read about retries.',
    needs: ['python3', '--version'],
    prepare: async () => `python3 ${EXAMPLES}/python/adapter.py`
  },
  {
    name: 'Go',
    file: 'go/main.go',
    about: 'A client with `net/http` that repeats reads only.',
    needs: ['go', 'version'],
    async prepare (folder) {
      const program = join(folder, 'adapter')
      await run('go', ['build', '-o', program, '.'], join(ROOT, EXAMPLES, 'go'))
      return program
    }
  },
  {
    name: 'openapi-fetch',
    file: 'openapi-fetch.mjs',
    about: 'With types by openapi-typescript.',
    prepare: async (folder) => await bundle('openapi-fetch', folder)
  },
  {
    name: 'hey-api and Zod',
    file: 'hey-api.mjs',
    about: 'Generated from the OpenAPI document, with Zod to validate responses.',
    async prepare (folder) {
      const document = join(folder, 'openapi.json')
      writeFileSync(document, await run(process.execPath, ['dist/cli.js', 'openapi']))
      const generator = join(TOOLS, 'generated-clients/generate.mjs')
      await run(process.execPath, [generator, document, join(folder, 'generated'), 'hey-api-zod'])
      return await bundle('hey-api', folder)
    }
  }
]

/** Holds the exam. @returns its report, or why it cannot be held here */
export async function examine ({ needs, prepare }: Adapter): Promise<Report | string> {
  if (needs !== undefined) {
    const [program, ...args] = needs
    if (spawnSync(program, args).status !== 0) return `there is no ${program}`
  }
  const folder = mkdtempSync(join(tmpdir(), 'petstore-exam-'))
  try {
    const command = await prepare(folder)
    const args = ['dist/cli.js', 'exam', '--json', '--client', command]
    // It ends with 1 when a paper was failed, and when there is no report.
    return JSON.parse(await run(process.execPath, args, ROOT, (code, out) => code === 1 && out !== '')) as Report
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/**
 * Bundles the adapter of a client that is generated, or that `test/tools` has installed.
 *
 * @param folder has the generated client, if there is one
 * @returns the command of the bundle
 */
async function bundle (name: string, folder: string): Promise<string> {
  for (const file of ['serve.mjs', `${name}.mjs`]) cpSync(join(ROOT, EXAMPLES, file), join(folder, file))
  const outfile = join(folder, 'adapter.mjs')
  await build({
    entryPoints: [join(folder, `${name}.mjs`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    nodePaths: [join(TOOLS, 'node_modules')]
  })
  return `${NODE} "${outfile}"`
}

/** Runs a program. @returns what it printed @throws with that if it fails */
async function run (
  program: string, args: string[], cwd = ROOT, isSuccess = (_code: number | null, _out: string) => false
): Promise<string> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close') as Promise<[number | null]>
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
  if (code !== 0 && !isSuccess(code, out)) throw new Error(`${program} ${args.join(' ')} failed: ${out}${err}`)
  return out
}

/** Returns the section of the page about a client. */
function sectionOf ({ name, about, file }: Adapter, { papers }: Report): string {
  const rows = papers.map(({ paper, verdict, findings: [finding] }) =>
    `| ${paper} | ${verdict} |${finding === undefined ? '' : ` ${withoutNumbers(finding.text)}`} |\n`)
  return `## ${name}

${about}
Its adapter is [${file}](../../${EXAMPLES}/${file}).

| Paper | Verdict | The first finding |
|---|---|---|
${rows.join('')}`
}

/** Returns a finding as it is in each run. */
function withoutNumbers (text: string): string {
  const [sentence = ''] = text.split(/: [[{]/)
  const cut = sentence.replaceAll(/request \d+/g, 'a request').replaceAll(/\d+(?=,? (ms|\d))/g, '…')
    .replaceAll(/(?<=such as |;t=)\d+/g, '…').replaceAll('|', '\\|')
  return `${cut[0]!.toUpperCase()}${cut.slice(1)}${/[.:]$/.test(cut) ? '' : ' …'}`
}

/** Returns the verdicts in a section of the page, by paper. */
export function verdictsOf (section: string): Map<string, string> {
  const rows = section.matchAll(/^\| ([\w-]+) \| (passed|failed|not taken) \|/gm)
  return new Map([...rows].map(([, paper, verdict]) => [paper!, verdict!]))
}

/** Returns the sections of the page, by the name of the client. */
export function readSections (): Map<string, string> {
  if (!existsSync(PAGE)) return new Map()
  const [, ...sections] = readFileSync(PAGE, 'utf8').split(/^(?=## )/m)
  return new Map(sections.map((section) => [/^## (.*)$/m.exec(section)![1]!, section.trimEnd() + '\n']))
}

function pageOf (sections: Map<string, string>): string {
  const columns = [...sections].map(([name, section]) => ({ name, verdicts: verdictsOf(section) }))
  const papers = [...columns[0]!.verdicts.keys()]
  const row = (...cells: string[]): string => `| ${cells.join(' | ')} |\n`
  const passed = columns.map(({ verdicts }) => [...verdicts.values()].filter((verdict) => verdict === 'passed').length)
  return `${NOTE}

# Results of the exam

What [the exam](../how-to/examine-your-client.md) says about the clients in
[\`${EXAMPLES}\`](../../${EXAMPLES}/README.md): ✔ passed, ✖ failed, – not taken, because the client has nothing for a
task. \`npm run examine\` runs it again for all clients whose language is on the machine.

${row('Paper', ...columns.map(({ name }) => name))}|---|${columns.map(() => ':-:|').join('')}
${papers.map((paper) => row(paper, ...columns.map(({ verdicts }) => MARKS[verdicts.get(paper) ?? 'not taken']!))).join('')}${row('Passed', ...passed.map(String))}
${[...sections.values()].join('\n')}`
}

if (process.argv[1] === import.meta.filename) {
  const sections = new Map<string, string>()
  const old = readSections()
  for (const adapter of ADAPTERS) {
    const report = await examine(adapter)
    const section = typeof report === 'string' ? old.get(adapter.name) : sectionOf(adapter, report)
    console.log(`${adapter.name}: ${typeof report === 'string' ? `left as it is, because ${report}` : 'examined'}`)
    if (section !== undefined) sections.set(adapter.name, section)
  }
  writeFileSync(PAGE, pageOf(sections))
}
