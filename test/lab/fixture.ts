import { faultList, snapshotList } from '../../src/lab/queries.ts'
import type { Answer, Client } from '../support/app.ts'
import type { Fixture, RaisingApp } from '../support/fixture.ts'

/** A fault that hits no request of a test: it waits for calls of webhooks. */
export async function newFault (client: Client, fields: object = {}): Promise<number> {
  const fault = { operation: 'webhook', effect: { type: 'delay', ms: 1 }, ...fields }
  const { status, body, text } = await client.post('/lab/faults', fault)
  if (status !== 201) throw new Error(text)
  return body.id
}

export async function newSnapshot (client: Client): Promise<number> {
  return (await client.post('/lab/snapshots', { label: 'Before' })).body.id
}

/** A store with more records than a snapshot can hold. */
async function fillBeyondLimit ({ app }: RaisingApp, { account }: Client): Promise<void> {
  // Two calls: Prisma splits a larger one, and sends the parts at once, which node-postgres deprecates.
  for (const length of [5_000, 5_001]) {
    const data = Array.from({ length }, () => ({ accountId: account!, name: 'Dogs' }))
    await app.database.prisma.category.createMany({ data })
  }
}

export const fixture: Fixture = {
  record: [
    { idName: 'faultId', create: async (client) => await newFault(client), missingCode: 'fault_not_found' },
    { idName: 'snapshotId', create: newSnapshot, missingCode: 'snapshot_not_found' }
  ],
  list: [
    {
      definition: faultList,
      samples: { openAt: '2026-11-21T10:00:00.000Z' },
      insertRows: ({ from, account, time }) => `
        INSERT INTO faults (id, account_id, operation, effect, after, times, created_at)
        SELECT i, ${account}, 'webhook', '{}', 0, 1, ${time} ${from}`
    },
    {
      definition: snapshotList,
      insertRows: ({ from, account, time }) => `
        INSERT INTO snapshots (id, account_id, created_at, categories, pets, inventory, orders, messages)
        SELECT i, ${account}, ${time}, 0, 0, 0, 0, 0 ${from}`
    }
  ],
  changes: {
    deleteFault: async (ada) => {
      const path = `/lab/faults/${await newFault(ada)}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    },
    deleteFaults: async (ada) => {
      await newFault(ada)
      return { read: '/lab/faults', method: 'DELETE', path: '/lab/faults', bodies: [undefined] }
    },
    deleteSnapshot: async (ada) => {
      const path = `/lab/snapshots/${await newSnapshot(ada)}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    }
  },
  operations: {
    'get /lab/faults': ['listFaults', 'lab', 200],
    'post /lab/faults': ['createFault', 'lab', 201, 'unknown_api_key', 'fault_limit_reached'],
    'post /lab/scenarios': ['createScenario', 'lab', 201, 'unknown_api_key', 'fault_limit_reached'],
    'delete /lab/faults': ['deleteFaults', 'lab', 204],
    'get /lab/faults/{faultId}': ['getFault', 'lab', 200, 'fault_not_found'],
    'delete /lab/faults/{faultId}': ['deleteFault', 'lab', 204, 'fault_not_found'],
    'get /lab/clock': ['getClock', 'lab', 200],
    'post /lab/clock/advance': ['advanceClock', 'lab', 200],
    'get /lab/snapshots': ['listSnapshots', 'lab', 200],
    'post /lab/snapshots': ['createSnapshot', 'lab', 201, 'snapshot_limit_reached', 'snapshot_too_large'],
    'get /lab/snapshots/{snapshotId}': ['getSnapshot', 'lab', 200, 'snapshot_not_found'],
    'delete /lab/snapshots/{snapshotId}': ['deleteSnapshot', 'lab', 204, 'snapshot_not_found'],
    'get /lab/snapshots/{snapshotId}/diff': ['getSnapshotDiff', 'lab', 200, 'snapshot_not_found', 'store_too_large'],
    'get /lab/snapshots/{snapshotId}/rows': ['getSnapshotRows', 'lab', 200, 'snapshot_not_found'],
    'post /lab/snapshots/import': ['importSnapshot', 'lab', 201, 'snapshot_limit_reached', 'snapshot_too_large'],
    'get /lab/state': ['getState', 'lab', 200, 'store_too_large'],
    'post /lab/snapshots/{snapshotId}/restore': [
      'restoreSnapshot', 'lab', 200, 'snapshot_not_found', 'store_too_large'
    ],
    'post /lab/reset': ['resetStore', 'lab', 200, 'store_too_large']
  },
  keyedWrites: {
    createFault: {
      prepare: async () => ['POST', '/lab/faults', { operation: 'webhook', effect: { type: 'reset' } }],
      shows: '/lab/faults'
    },
    createScenario: {
      prepare: async () => [
        'POST', '/lab/scenarios', { faults: [{ operation: 'webhook', effect: { type: 'reset' }, forSeconds: 60 }] }
      ],
      shows: '/lab/faults'
    },
    deleteFault: { prepare: async (ada) => ['DELETE', `/lab/faults/${await newFault(ada)}`], shows: '/lab/faults' },
    deleteFaults: {
      prepare: async (ada) => {
        await newFault(ada)
        return ['DELETE', '/lab/faults']
      },
      shows: '/lab/faults'
    },
    advanceClock: { prepare: async () => ['POST', '/lab/clock/advance', { seconds: 200_000 }], shows: '/lab/clock' },
    createSnapshot: { prepare: async () => ['POST', '/lab/snapshots', { label: 'One' }], shows: '/lab/snapshots' },
    deleteSnapshot: {
      prepare: async (ada) => ['DELETE', `/lab/snapshots/${await newSnapshot(ada)}`], shows: '/lab/snapshots'
    },
    importSnapshot: {
      prepare: async () => ['POST', '/lab/snapshots/import', { type: 'category', id: 4, name: 'Cats' }],
      shows: '/lab/snapshots'
    },
    restoreSnapshot: {
      prepare: async (ada) => ['POST', `/lab/snapshots/${await newSnapshot(ada)}/restore`], shows: '/events'
    },
    resetStore: { prepare: async () => ['POST', '/lab/reset', { sample: { pets: 3 } }], shows: '/events' }
  },
  errors: {
    fault_not_found: { status: 404, raise: async (_app, client) => await client.get('/lab/faults/4711') },
    snapshot_not_found: {
      status: 404, raise: async (_app, client) => await client.post('/lab/snapshots/4711/restore', undefined)
    },
    unknown_api_key: {
      status: 409,
      raise: async (_app, client) =>
        await client.post('/lab/faults', { operation: 'listPets', effect: { type: 'reset' }, keyId: 4_711 })
    },
    fault_limit_reached: {
      status: 409,
      raise: async (_app, client) => {
        await Promise.all(Array.from({ length: 100 }, async () => await newFault(client)))
        return await client.post('/lab/faults', { operation: 'webhook', effect: { type: 'reset' } })
      }
    },
    snapshot_limit_reached: {
      status: 409,
      raise: async (_app, client) => {
        const take = async (): Promise<Answer> => await client.post('/lab/snapshots', {})
        await Promise.all(Array.from({ length: 20 }, take))
        return await take()
      }
    },
    snapshot_too_large: {
      status: 409,
      raise: async (app, client) => {
        await fillBeyondLimit(app, client)
        return await client.post('/lab/snapshots', {})
      }
    },
    store_too_large: {
      status: 409,
      raise: async (app, client) => {
        await fillBeyondLimit(app, client)
        return await client.post('/lab/reset', {})
      }
    },
    injected_fault: {
      status: [408, 429, 500, 502, 503, 504],
      raise: async (_app, client, status) => {
        await newFault(client, { operation: 'listPets', effect: { type: 'refuse', status } })
        return await client.get('/pets')
      }
    }
  }
}
