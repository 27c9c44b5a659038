// Only on SQLite: the exam starts a service of its own.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { holdExam, type Result } from '../../src/exam/exam.ts'
import { PAPERS } from '../../src/exam/papers.ts'

const CLIENT = join(import.meta.dirname, 'client.mjs')

interface Flaw { papers: string[], finding: RegExp }

const flaw = (papers: string, finding: RegExp): Flaw => ({ papers: papers.split(' '), finding })

/** The flaws of client.mjs: the papers that show each, and what they find. */
const FLAWS: Record<string, Flaw> = {
  'new-key': flaw('lost-answer', /The repetition .* has another Idempotency-Key than .*, whose response was lost/),
  'no-key': flaw('lost-answer time-out', /has no Idempotency-Key/),
  impatient: flaw('retry', /repeated request \d+ after \d+ ms; Retry-After asked for 2000 ms/),
  'no-dates': flaw('retry', /repeated request \d+ after \d+ ms; Retry-After asked for/),
  'no-retry': flaw('retry', /did not repeat request \d+, which was answered 503/),
  hopeless: flaw('retry', /repeated request \d+, which was answered 404/),
  constant: flaw('retry', /The pauses do not grow/),
  'in-step': flaw('retry', /8 clients that failed together came back together/),
  endless: flaw('retry', /did not stop: it sent a request 21 times/),
  'no-time-out': flaw('time-out', /still waited for the response to request \d+ after 20 s/),
  'time-out-key': flaw('time-out', /has another Idempotency-Key than .*, which was silent/),
  trusting: flaw('broken-bodies', /had a value of the wrong type, and the client passed it on/),
  'closed-enum': flaw('growth', /A pet with the status `unknown` was an error/),
  'closed-record': flaw('growth', /A pet with one more member was an error/),
  'first-page': flaw('pages', /misses \d+ of 165 pets.* The response to request \d+ names a next page/),
  'repeats-records': flaw('pages', /has ids more than once: 1/),
  'no-if-match': flaw('lost-update', /The change of request \d+ is lost: request \d+ has overwritten it/),
  'no-second-read': flaw('lost-update', /The name is "Rex 1 the first"; with both changes it is/),
  'no-cache': flaw('not-modified', /no request had If-None-Match/),
  stale: flaw('not-modified', /When the client read the pet after a change/),
  'from-the-start': flaw('stream', /handled event 1 twice/),
  skips: flaw('stream', /After event \d+ the client handled event/),
  'lost-position': flaw('stream', /did not follow the events: You asked for events that have expired/),
  'no-signature': flaw('webhook', /which had a bad signature at first, was accepted/),
  'no-age': flaw('webhook', /which had an old timestamp at first, was accepted/),
  'takes-twice': flaw('webhook', /which was sent twice, was taken 2 times/),
  'in-order': flaw('webhook', /which came after a newer one, was not taken/),
  'one-signature': flaw('webhook', /which was signed with the old and the new secret, was refused: 400/),
  gone: flaw('webhook', /responded 410 to event \d+, which had a bad signature at first/),
  'old-secret': flaw('webhook', /which was signed with the new secret alone, was refused: 400/),
  unlimited: flaw('limits', /exceeded the limit with request \d+: request \d+ was told RateLimit: "default";r=0/),
  vague: flaw('sunset', /The error does not say that the operation has ended/),
  'repeats-the-end': flaw('sunset', /repeated request \d+, although the operation has ended/)
}

/** Flaws that share an exam, because they do not hide each other. Every flaw is in one of them. */
const HALVES = [
  ['new-key', 'no-time-out', 'trusting', 'first-page', 'no-cache', 'no-signature'],
  ['impatient', 'closed-enum', 'no-if-match', 'from-the-start', 'unlimited', 'vague']
]
const OTHERS = [
  [
    'in-step', 'time-out-key', 'closed-record', 'repeats-records', 'no-second-read', 'stale',
    'lost-position', 'no-age', 'repeats-the-end'
  ],
  ['no-key', 'no-dates', 'no-retry', 'constant', 'skips', 'takes-twice', 'in-order'],
  ['endless', 'hopeless', 'one-signature', 'old-secret'],
  ['gone']
]

/** An answer to the first task, without an address to which the service could send. */
const USELESS = JSON.stringify({ id: 1, ok: true, result: { url: 'x' } })

const NODE = JSON.stringify(process.execPath)

async function examine (flaws: string[], papers = PAPERS): Promise<Result[]> {
  return await holdExam(`${NODE} ${JSON.stringify(CLIENT)} ${flaws.join(',')}`, { papers })
}

function papersOf (wanted: string): typeof PAPERS {
  return PAPERS.filter(({ name }) => name === wanted)
}

/** Asserts that exactly the papers of these flaws fail, and find them. */
function assertFound (t: Test, results: Result[], flaws: string[]): void {
  const expected = new Set(flaws.flatMap((name) => FLAWS[name]!.papers))
  for (const { paper, verdict, findings } of results) {
    t.equal(verdict, expected.has(paper) ? 'failed' : 'passed', `${paper}: ${JSON.stringify(findings)}`)
  }
  for (const name of flaws) {
    for (const paper of FLAWS[name]!.papers) {
      const { findings } = results.find((result) => result.paper === paper)!
      const found = findings.find(({ text }) => FLAWS[name]!.finding.test(text))
      t.ok(found, `${name}: ${findings.map(({ text }) => text).join('\n')}`)
      // The calls of a webhook are no requests of the client.
      if (paper !== 'webhook') t.ok((found?.requests ?? []).length > 0, `${name} names requests`)
    }
  }
}

t.test('a client without flaws passes all papers, also with other good habits', async (t) => {
  const [results, ...others] = await Promise.all([
    examine([]), examine(['stays'], papersOf('sunset')), examine(['asks-to-wait'], papersOf('webhook'))
  ])
  t.equal(results.length, 12)
  assertFound(t, results, [])
  for (const [result] of others) t.match(result, { verdict: 'passed', findings: [] })
})

t.test('an exam that is stopped while its service starts holds no paper', async (t) => {
  const stop = new AbortController()
  let isHeld = false
  const sit = async (): Promise<() => []> => {
    isHeld = true
    return () => []
  }
  const held = holdExam(NODE, { papers: [{ ...PAPERS[0]!, sit }], signal: stop.signal })
  stop.abort(new Error('stopped'))
  await t.rejects(held, { message: 'stopped' })
  t.notOk(isHeld)
})

t.test('every flaw is tried', async (t) => {
  t.same([...HALVES, ...OTHERS].flat().sort(), Object.keys(FLAWS).sort())
})

for (const flaws of HALVES) {
  t.test(`only their papers find the flaws ${flaws.join(', ')}`, async (t) => {
    assertFound(t, await examine(flaws), flaws)
  })
}

for (const flaws of OTHERS) {
  t.test(`their papers find the flaws ${flaws.join(', ')}`, async (t) => {
    const papers = PAPERS.filter(({ name }) => flaws.some((flaw) => FLAWS[flaw]!.papers.includes(name)))
    assertFound(t, await examine(flaws, papers), flaws)
  })
}

t.test('a client that ends, or writes no answer or a useless one, fails with a sentence', async (t) => {
  // Some of these papers do other things meanwhile.
  const clients: Array<[paper: string, program: string, sentence: RegExp]> = [
    ['stream', 'throw new Error(42)', /^The client ended with code 1.*: Error: 42$/],
    ['webhook', "process.stdin.once('data', () => process.exit(3))",
      /^The client ended with code 3 before it answered the task /],
    ['webhook', `process.stdin.once('data', () => console.log('${USELESS}'))`,
      /^The service refuses the address of the receiver: url must be an absolute URL/],
    ['pages', "console.log('ready')", /^The client wrote a line that is no answer to a task: ready$/],
    ['lost-update', "process.stdin.on('data', (line) => console.log(String(line)))",
      /that is no answer to a task: \{"id":1,"do":/],
    ['stream', "process.stdin.on('data', () => console.log('[1]'))", /that is no answer to a task: \[1\]$/]
  ]
  await Promise.all(clients.map(async ([name, program, sentence]) => {
    const results = await holdExam(`${NODE} -e ${JSON.stringify(program)}`, { papers: papersOf(name) })
    t.equal(results.length, 1)
    for (const { verdict, findings } of results) {
      t.match([verdict, ...findings.map(({ text }) => text)], ['failed', sentence], `${name}: ${program}`)
    }
  }))
})
