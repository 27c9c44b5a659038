import { Type, type Static } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import {
  NO_ADDITIONAL_PROPERTIES, Id, ListQuery, NumberOf, ref, StringEnum, Text, Timestamp
} from '../http/common-schemas.ts'
import { EffectSchema, type Effect } from './effects.ts'
import { StoreCountsSchema, StoreRowSchema } from './stored-tables.ts'

const count = (description: string, minimum: number, maximum: number, example: number) =>
  Type.Integer({ minimum, maximum, description, example })

const AFTER = { minimum: 0, maximum: 1_000_000, description: 'Number of matching requests that pass first', example: 0 }
const TIMES = { minimum: 1, maximum: 1_000, description: 'Number of requests that the fault then hits', example: 1 }
const operation = Text(
  1, 100, 'The operationId of the requests to hit; `*` for every operation except those of the lab and of accounts; ' +
    '`webhook` for requests to webhooks', 'placeOrder'
)
const keyId = Id('Only requests with this API key match', 2)
const forSeconds = count(
  'Time for which the fault hits matching requests, by the clock of the account, in seconds; in place of `times`',
  1, 2_592_000, 60
)
const rate = Type.Number({
  minimum: 0.000001,
  maximum: 1,
  description: 'The share of the matching requests to hit. Which ones follows from `seed` and their number, so every ' +
    'run is the same. Default: 1',
  example: 0.3
})
const SEED = {
  minimum: 0, maximum: 4_294_967_295, description: 'Selects other requests at the same `rate`', example: 7
}

export const NewFaultSchema = Type.Object({
  operation,
  effect: ref(EffectSchema),
  after: Type.Optional(Type.Integer({ ...AFTER, description: `${AFTER.description}. Default: 0` })),
  times: Type.Optional(Type.Integer({ ...TIMES, description: `${TIMES.description}. Default: 1` })),
  forSeconds: Type.Optional(forSeconds),
  rate: Type.Optional(rate),
  seed: Type.Optional(Type.Integer({ ...SEED, description: `${SEED.description}. Default: 0` })),
  keyId: Type.Optional(keyId)
}, {
  $id: 'NewFault',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'A fault to inject. It lets `after` matching requests pass and hits the next `times`, or those of the ' +
    'next `forSeconds`.',
  example: { operation: 'placeOrder', effect: { type: 'lose_answer' }, times: 1 }
})
export type NewFault = Omit<Static<typeof NewFaultSchema>, 'effect'> & { effect: Effect }

export const FaultSchema = Type.Object({
  id: Id('Identifier of the fault', 1),
  operation,
  effect: ref(EffectSchema),
  after: Type.Integer(AFTER),
  times: Type.Optional(Type.Integer(TIMES)),
  forSeconds: Type.Optional(forSeconds),
  rate: Type.Optional(rate),
  seed: Type.Optional(Type.Integer(SEED)),
  keyId: Type.Optional(keyId),
  passed: NumberOf('matching requests that passed', 0),
  hits: NumberOf('requests that the fault has hit', 0),
  createdAt: Timestamp('Creation time')
}, { $id: 'Fault', description: 'A counted fault. It belongs to one account and hits no other.' })
export type Fault = Omit<Static<typeof FaultSchema>, 'effect'> & { effect: Effect }

export const NewScenarioSchema = Type.Object({
  faults: Type.Array(ref(NewFaultSchema), { minItems: 1, maxItems: 20, description: 'The faults, the oldest first' })
}, {
  $id: 'NewScenario',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'Faults to inject together: all, or none if one of them is refused.',
  // Of webhooks: faults of other operations would hit the examples of these.
  example: {
    faults: [
      { operation: 'webhook', effect: { type: 'corrupt', how: 'duplicate' }, forSeconds: 3_600, rate: 0.3, seed: 7 },
      { operation: 'webhook', effect: { type: 'reset' }, times: 2 }
    ]
  }
})

const offsetSeconds = Type.Integer({
  minimum: 0, format: 'int64', description: 'How far the clock is ahead of real time, in seconds', example: 3_600
})

export const ClockSchema = Type.Object({ offsetSeconds }, {
  $id: 'Clock', description: 'The clock of the account.'
})

export const NewClockAdvanceSchema = Type.Object({
  seconds: Type.Optional(count('Seconds by which to move the clock', 1, 315_360_000, 3_600)),
  to: Type.Optional(Timestamp('Time to which to move the clock, later than the clock', '2030-12-06T00:00:00.000Z'))
}, {
  $id: 'NewClockAdvance',
  ...NO_ADDITIONAL_PROPERTIES,
  minProperties: 1,
  maxProperties: 1,
  description: 'How far to move the clock: either `seconds` or `to`.',
  // Less than the 24 hours of an idempotency key, so that a second run of the examples is replayed.
  example: { seconds: 3_600 }
})
export type NewClockAdvance = Static<typeof NewClockAdvanceSchema>

export const AdvancedClockSchema = Type.Object({
  now: Timestamp('The time that the clock shows', '2026-11-21T11:00:00.000Z'), offsetSeconds
}, { $id: 'AdvancedClock', description: 'The clock after it was moved.' })
export type AdvancedClock = Static<typeof AdvancedClockSchema>

const label = Text(1, 255, 'What the snapshot is for', 'Before the migration')

export const NewSnapshotSchema = Type.Object({ label: Type.Optional(label) }, {
  $id: 'NewSnapshot', ...NO_ADDITIONAL_PROPERTIES, description: 'A snapshot to take.'
})
export type NewSnapshot = Static<typeof NewSnapshotSchema>

export const SnapshotSchema = Type.Object({
  id: Id('Identifier of the snapshot', 1),
  createdAt: Timestamp('Time of the snapshot'),
  counts: ref(StoreCountsSchema),
  label: Type.Optional(label)
}, { $id: 'Snapshot', description: 'A copy of the records of a store.' })
export type Snapshot = Static<typeof SnapshotSchema>

const hash = (description: string, example: string) =>
  Type.String({ pattern: '^[0-9a-f]{64}$', description, example })

export const StoreStateSchema = Type.Object({
  hash: hash(
    'SHA-256 over all records with their ids and versions: equal while nothing changes',
    '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef'),
  contentHash: hash(
    'SHA-256 over all records with positions in place of ids, and without the times that the service sets: equal for ' +
      'stores that the same requests have filled',
    'ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d'),
  counts: ref(StoreCountsSchema)
}, { $id: 'StoreState', description: 'What identifies the state of a store.' })
export type StoreState = Static<typeof StoreStateSchema>

const rowsOf = (description: string) => Type.Array(ref(StoreRowSchema), { description })

export const SnapshotDiffSchema = Type.Object({
  created: rowsOf('Records that the snapshot does not have'),
  changed: Type.Array(Type.Object({ before: ref(StoreRowSchema), after: ref(StoreRowSchema) }), {
    description: 'Records that differ, as they were in the snapshot and as they are',
    example: [{
      before: { type: 'pet', id: 7, name: 'Felix', categoryId: 2, status: 'available' },
      after: { type: 'pet', id: 7, name: 'Felix', categoryId: 2, status: 'sold' }
    }]
  }),
  deleted: rowsOf('Records that only the snapshot has')
}, {
  $id: 'SnapshotDiff',
  description: 'What has changed in a store since a snapshot: types in the order of `StoreCounts`, records by id'
})

const sample = Type.Object({
  pets: count('Number of pets', 0, 2_000, 20),
  seed: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 4_294_967_295,
    description: 'The same seed gives the same records, in the same order. Default: 0',
    example: 7
  }))
}, { ...NO_ADDITIONAL_PROPERTIES, description: 'Records to fill the store with.' })

export const NewStoreResetSchema = Type.Object({ sample: Type.Optional(sample) }, {
  $id: 'NewStoreReset',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'What the store contains after the reset; without `sample`, nothing.',
  example: { sample: { pets: 20, seed: 7 } }
})
export type NewStoreReset = Static<typeof NewStoreResetSchema>

export const ResetStoreSchema = Type.Object({ counts: ref(StoreCountsSchema) }, {
  $id: 'ResetStore', description: 'The records of the store after the reset.'
})
export type ResetStore = Static<typeof ResetStoreSchema>

export const faultEvents = defineEvents('fault', {
  hit: {
    fault: ref(FaultSchema),
    requestId: Type.String({
      description: 'The `Request-Id` of the request, or its `webhook-id`', example: 'a-1'
    }),
    operation: Type.String({ description: 'The operationId of the request, or `webhook`', example: 'placeOrder' })
  }
})

export const clockEvents = defineEvents('clock', {
  advanced: {
    from: Timestamp('Time of the clock before', '2026-11-21T10:00:00.000Z'),
    to: Timestamp('Time of the clock now', '2026-11-21T11:00:00.000Z')
  }
})

export const storeEvents = defineEvents('store', {
  replaced: {
    reason: StringEnum(['restored', 'reset'], { description: 'Why the store changed as a whole', example: 'restored' }),
    snapshot: Type.Optional(ref(SnapshotSchema))
  }
})

export const labEvents = {
  faultHit: faultEvents.hit, clockAdvanced: clockEvents.advanced, storeReplaced: storeEvents.replaced
}

export const FaultParams = Type.Object({ faultId: Id('Id of the fault', 1) }, NO_ADDITIONAL_PROPERTIES)
export const SnapshotParams = Type.Object({ snapshotId: Id('Id of the snapshot', 1) }, NO_ADDITIONAL_PROPERTIES)
export const LabQuery = ListQuery({})
