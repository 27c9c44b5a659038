import t from 'tap'
import type { ErrorRecord } from '../support/met-errors.ts'
import { reportErrors } from './met-errors.ts'

/** What two processes know. The document of the second one has no lab. */
const RECORDS: ErrorRecord[] = [
  {
    documented: [
      'getPet 404 pet_not_found', 'deletePet 404 pet_not_found', 'getPet 500 internal_error', '- 404 route_not_found',
      'getPet 502 injected_fault', 'deletePet 409 pet_in_use'
    ],
    met: ['getPet 404 pet_not_found', '- 404 route_not_found']
  },
  {
    documented: ['getPet 404 pet_not_found', '- 502 injected_fault'],
    met: ['deletePet 409 pet_in_use', 'getPet 502 injected_fault']
  }
]

t.test('the report of errors', async (t) => {
  await t.test('names the documented errors that no process met', async (t) => {
    const { report } = reportErrors(RECORDS, { internal_error: 'every 500 is a defect' })
    t.same(report, [
      'Tests met 4 of 6 documented errors of operations. Never met:',
      '  404 pet_not_found: deletePet',
      '  500 internal_error: getPet (every 500 is a defect)'
    ])
  })

  await t.test('fails when a code is met nowhere', async (t) => {
    t.same(reportErrors(RECORDS).failures, ['no test met the error code internal_error'])
    t.same(reportErrors([...RECORDS, { documented: [], met: ['getPet 500 internal_error'] }]).failures, [])
  })

  await t.test('names the operations that met an error where they are fewer', async (t) => {
    const documented = ['a', 'b', 'c', 'd'].map((id) => `${id} 408 request_timeout` as const)
    t.same(reportErrors([{ documented, met: ['c 408 request_timeout'] }], {}).report[1],
      '  408 request_timeout: 3 operations, all but c')
    t.same(reportErrors([{ documented, met: [] }], {}).report[1], '  408 request_timeout: all 4 operations')
  })
})
