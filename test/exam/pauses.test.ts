// Only on SQLite: pure functions.

import t from 'tap'
import type { RecordedRequest } from '../../src/client/client.ts'
import { judgePauses } from '../../src/exam/papers/pauses.ts'

const CLIENTS = 8

/** Returns random numbers from 0 to 1, the same in every run. */
function randomNumbers (seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

/** Returns the attempts of clients, by the pause before each further attempt. */
function attempts (retries: number, pause: (attempt: number) => number): RecordedRequest[][] {
  return Array.from({ length: CLIENTS }, () => {
    let at = Date.parse('2026-11-21T10:00:00.000Z')
    return Array.from({ length: retries + 1 }, (_, i) => {
      if (i > 0) at += Math.round(pause(i - 1))
      return { id: i + 1, at: new Date(at).toISOString(), durationMs: 0 } as RecordedRequest
    })
  })
}

function verdict (retries: number, pause: (attempt: number) => number): string {
  return judgePauses(attempts(retries, pause)).map(({ text }) => text).join(' ')
}

/** What a busy machine adds to a pause, in ms. */
const NOISE_MS = 60

t.test('growing pauses with a random share pass, whatever the random numbers are', async (t) => {
  const random = randomNumbers(7)
  const policies: Array<[name: string, retries: number, pause: (attempt: number) => number]> = [
    ['half of each pause, 4 retries', 4, (attempt) => 250 * 2 ** attempt * (0.5 + random() / 2)],
    ['half of each pause, 2 retries', 2, (attempt) => 250 * 2 ** attempt * (0.5 + random() / 2)],
    ['a quarter added', 3, (attempt) => 500 * 2 ** attempt * (1 + random() / 4)],
    ['a fifth either way, factor 1.6', 4, (attempt) => 1_000 * 1.6 ** attempt * (0.8 + random() * 0.4)],
    ['up to a second added', 3, (attempt) => 1_000 * 2 ** attempt + random() * 1_000],
    ['one retry', 1, () => 200 + random() * 200]
  ]
  for (const [name, retries, pause] of policies) {
    const failed = Array.from({ length: 2_000 }, () =>
      verdict(retries, (attempt) => pause(attempt) + random() * NOISE_MS)).filter((text) => text !== '')
    t.same(failed, [], name)
  }
})

t.test('pauses that do not grow, are in step or are none are found, also on a busy machine', async (t) => {
  const random = randomNumbers(8)
  const policies: Array<[finding: RegExp, retries: number, pause: (attempt: number) => number]> = [
    [/^The client waited for \d+ ms in all/, 3, () => 0],
    [/^The pauses do not grow.*came back together/, 3, () => 1_000],
    [/^The pauses do not grow\. They are, on average: /, 4, () => 500 * (0.75 + random() / 2)],
    [/came back together, after pauses of \d+, \d+, \d+, \d+ ms/, 4, (attempt) => 250 * 2 ** attempt]
  ]
  for (const [finding, retries, pause] of policies) {
    for (let i = 0; i < 500; i++) {
      const text = verdict(retries, (attempt) => pause(attempt) + random() * NOISE_MS)
      if (!finding.test(text)) t.fail(`${finding.source}: ${text}`)
    }
    t.pass(finding.source)
  }
})
