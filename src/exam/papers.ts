import type { AnyPaper } from './paper.ts'
import { brokenBodies } from './papers/broken-bodies.ts'
import { growth } from './papers/growth.ts'
import { limits } from './papers/limits.ts'
import { lostAnswer } from './papers/lost-answer.ts'
import { lostUpdate } from './papers/lost-update.ts'
import { notModified } from './papers/not-modified.ts'
import { pages } from './papers/pages.ts'
import { retry } from './papers/retry.ts'
import { stream } from './papers/stream.ts'
import { sunset } from './papers/sunset.ts'
import { timeOut } from './papers/time-out.ts'
import { webhook } from './papers/webhook.ts'

/** The papers, in the order of the report. */
export const PAPERS: AnyPaper[] = [
  lostAnswer, retry, timeOut, brokenBodies, growth, pages, lostUpdate, notModified, stream, webhook, limits, sunset
]
