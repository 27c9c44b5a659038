import type { FastifyInstance } from 'fastify'
import type { Answer } from './app.ts'

/** The OpenAPI document as a judge of answers. */
export interface Contract {
  /** What an answer has that the document does not allow, or lacks that it promises. */
  problemOf: (method: string, path: string, answer: Answer) => string | undefined
}

export function contractOf (_app: FastifyInstance): Contract {
  return { problemOf: () => undefined }
}
