import t from 'tap'
import { ADAPTERS, examine, readSections, verdictsOf, type Report } from '../../scripts/examine.ts'
import { build } from '../support/cli.ts'

t.before(build)

/** The papers that each client passes. */
const PASSED: Record<string, string[]> = {
  'petstore-lab/client': [
    'lost-answer', 'retry', 'time-out', 'broken-bodies', 'growth', 'pages', 'lost-update', 'not-modified', 'stream',
    'webhook', 'limits', 'sunset'
  ],
  fetch: ['growth']
}

t.test('the client of this repository passes all papers, and the naive client one', async (t) => {
  const sections = readSections()
  await Promise.all(ADAPTERS.filter(({ name }) => PASSED[name] !== undefined).map(async (adapter) => {
    const { papers } = await examine(adapter) as Report
    const shown = papers.map(({ paper, verdict, findings }) => ({ paper, verdict, findings }))
    const passed = papers.filter(({ verdict }) => verdict === 'passed').map(({ paper }) => paper)
    t.strictSame(passed, PASSED[adapter.name], adapter.name, { shown })
    t.strictSame(new Map(papers.map(({ paper, verdict }) => [paper, verdict])), verdictsOf(sections.get(adapter.name)!),
      `${adapter.name}: npm run examine brings the page of results up to date`)
  }))
})

t.test('the page of results has all clients', async (t) => {
  t.strictSame([...readSections().keys()], ADAPTERS.map(({ name }) => name))
})
