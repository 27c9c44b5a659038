import t from 'tap'
import { classifyError } from '../../src/database/error-classification.ts'

t.test('every network error of an unreachable server is classified as unavailable', async (t) => {
  for (const code of [
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH'
  ]) {
    const error = Object.assign(new Error(`connect ${code} 10.0.0.1:5432`), { code })
    t.equal(classifyError(error), 'unavailable', code)
    t.equal(classifyError(new Error(`getaddrinfo ${code} db`)), 'unavailable', `${code} in a message alone`)
  }
})

t.test('an error of a statement is neither unavailable nor a conflict', async (t) => {
  t.equal(
    classifyError(Object.assign(new Error('violates foreign key constraint'), { code: '23503' })),
    'statement error'
  )
  t.equal(classifyError(Object.assign(new Error('deadlock detected'), { code: '40P01' })), 'conflict')
})
