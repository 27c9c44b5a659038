// Only on SQLite: pure functions.

import t from 'tap'
import type { RecordedRequest } from '../../src/client/client.ts'
import { Undecided } from '../../src/exam/paper.ts'
import { judgePauses } from '../../src/exam/papers/pauses.ts'

const CLIENTS = 8

/** Returns random numbers from 0 to 1, the same in every run. */
function randomNumbers (seed: number): () => number {
  // mulberry32
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
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

/** Judges clients as the exam does, which holds its paper once more if the verdict is in doubt. */
function verdict (retries: number, pause: (attempt: number) => number): string {
  for (let held = 1; ; held++) {
    try {
      return judgePauses(attempts(retries, pause), held).map(({ text }) => text).join(' ')
    } catch (error) {
      if (!(error instanceof Undecided)) throw error
    }
  }
}

/** Returns what a busy machine adds to a pause, in ms: mostly little, seldom much. */
function noise (random: () => number): number {
  return -Math.log(1 - random()) * 10 + (random() < 0.1 ? random() * 200 : 0)
}

t.test('growing pauses with a random share pass, whatever the random numbers are', async (t) => {
  const random = randomNumbers(7)
  const policies: Array<[name: string, retries: number, pause: (attempt: number) => number]> = [
    ['half of each pause, 4 retries', 4, (attempt) => 250 * 2 ** attempt * (0.5 + random() / 2)],
    ['half of each pause, 2 retries', 2, (attempt) => 250 * 2 ** attempt * (0.5 + random() / 2)],
    ['two fifths added', 3, (attempt) => 500 * 2 ** attempt * (1 + random() * 0.4)],
    ['a fifth either way, factor 1.6', 4, (attempt) => 1_000 * 1.6 ** attempt * (0.8 + random() * 0.4)],
    ['up to a second added', 3, (attempt) => 1_000 * 2 ** attempt + random() * 1_000],
    ['one retry', 1, () => 200 + random() * 200]
  ]
  for (const [name, retries, pause] of policies) {
    const failed = Array.from({ length: 2_000 }, () =>
      verdict(retries, (attempt) => pause(attempt) + noise(random))).filter((text) => text !== '')
    t.same(failed, [], name)
  }
})

t.test('pauses that do not grow, are in step or are none are found, also on a busy machine', async (t) => {
  const random = randomNumbers(9)
  const policies: Array<[finding: RegExp, retries: number, pause: (attempt: number) => number]> = [
    [/^The client waited for \d+ ms in all/, 3, () => 0],
    [/^The pauses do not grow.*came back together/, 3, () => 1_000],
    [/^The pauses do not grow\. They are, on average: /, 4, () => 500 * (0.75 + random() / 2)],
    [/came back together, after pauses of \d+, \d+, \d+, \d+ ms/, 4, (attempt) => 250 * 2 ** attempt]
  ]
  for (const [finding, retries, pause] of policies) {
    for (let i = 0; i < 500; i++) {
      const text = verdict(retries, (attempt) => pause(attempt) + noise(random))
      if (!finding.test(text)) t.fail(`${finding.source}: ${text}`)
    }
    t.pass(finding.source)
  }
})
