import t from 'tap'
import { ADAPTERS, examine, readSections, verdictsOf } from '../../scripts/examine.ts'
import { build } from '../support/cli.ts'

t.before(build)

// The clients of other languages, and those that are generated. exam-adapters.test.ts examines the others.

const OTHERS = ADAPTERS.filter(({ name }) => !['petstore-lab/client', 'fetch'].includes(name))

for (const adapter of OTHERS) {
  t.test(`the verdicts about ${adapter.name} are those of the page`, async (t) => {
    const report = await examine(adapter)
    if (typeof report === 'string') {
      t.pass('', { skip: report })
      return
    }
    const { papers } = report
    t.strictSame(new Map(papers.map(({ paper, verdict }) => [paper, verdict])),
      verdictsOf(readSections().get(adapter.name)!), 'npm run examine brings the page up to date', { papers })
  })
}
