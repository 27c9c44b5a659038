import { deleteLimits, putLimits } from '../../src/limits/commands.ts'
import { limitsEtag } from '../../src/limits/queries.ts'
import type { Limits } from '../../src/limits/schemas.ts'
import { ACCOUNT, decisionsOf, refusals } from '../support/decide.ts'

const DEFAULTS = { per: 'account', fields: 'ietf', retryAfter: 'seconds' } as const
const LIMITS: Limits = { requests: 10, windowSeconds: 60, ...DEFAULTS, refused: 3, early: 1 }
const rows = { accountLimits: [{ accountId: ACCOUNT, ...LIMITS, windows: '[{}]' }] }
const ref = { account: ACCOUNT, conditions: {} }
const fresh = { ...LIMITS, refused: 0, early: 0 }
const choices = { requests: 5, windowSeconds: 1, per: 'key', fields: 'none', retryAfter: 'date' } as const

export const decisions = [
  decisionsOf(putLimits, {
    'the first limits': {
      input: { ...ref, limits: { requests: 10, windowSeconds: 60 }, conditions: { ifNoneMatch: '*' } },
      outcome: {
        record: fresh,
        etag: limitsEtag(fresh),
        changes: { lab: [ACCOUNT] },
        saved: { accountLimits: { [ACCOUNT]: { requests: 10, windowSeconds: 60, ...DEFAULTS } } }
      }
    },
    'limits in place of others': {
      rows,
      input: { ...ref, limits: choices, conditions: { ifMatch: [limitsEtag(LIMITS)] } },
      outcome: {
        record: { ...choices, refused: 0, early: 0 },
        etag: limitsEtag({ ...choices, refused: 0, early: 0 }),
        changes: { lab: [ACCOUNT] },
        saved: { accountLimits: { [ACCOUNT]: { ...choices, refused: 0, early: 0, windows: '[]' } } }
      }
    },
    'the limits that it has': {
      rows,
      input: { ...ref, limits: { requests: 10, windowSeconds: 60 } },
      outcome: {
        record: fresh,
        etag: limitsEtag(fresh),
        changes: { lab: [ACCOUNT] },
        saved: { accountLimits: { [ACCOUNT]: { refused: 0, early: 0, windows: '[]' } } }
      }
    },
    'If-Match without limits': {
      input: { ...ref, limits: choices, conditions: { ifMatch: '*' } }, outcome: 'PRECONDITION_FAILED'
    },
    'If-Match of other limits': {
      rows,
      input: { ...ref, limits: choices, conditions: { ifMatch: [limitsEtag(fresh)] } },
      outcome: 'PRECONDITION_FAILED'
    },
    'If-None-Match with limits': {
      rows, input: { ...ref, limits: choices, conditions: { ifNoneMatch: '*' } }, outcome: 'PRECONDITION_FAILED'
    }
  }),
  decisionsOf(deleteLimits, {
    ...refusals(ref, rows, 'LIMITS_NOT_FOUND', limitsEtag(LIMITS)),
    limits: {
      rows,
      input: { ...ref, conditions: { ifMatch: [limitsEtag(LIMITS)] } },
      outcome: { changes: { lab: [ACCOUNT] }, saved: { accountLimits: { [ACCOUNT]: null } } }
    }
  })
]
