import { deleteFault } from '../../src/lab/fault-commands.ts'
import { ACCOUNT, decisionsOf, refusals } from '../support/decide.ts'

const rows = { faults: [{ id: 3, passed: 1, spared: 1, hits: 2 }] }
const ref = { account: ACCOUNT, faultId: 3, conditions: {} }

export const decisions = [
  decisionsOf(deleteFault, {
    ...refusals(ref, rows, 'FAULT_NOT_FOUND', '"5"'),
    'a fault': {
      rows,
      input: { ...ref, conditions: { ifMatch: ['"5"'] } },
      outcome: { changes: { lab: [ACCOUNT] }, saved: { faults: { 3: null } } }
    }
  })
]
