import type { Client } from '../support/app.ts'
import type { Fixture, PrepareChange } from '../support/fixture.ts'

const PATH = '/lab/limits'

export async function setLimits (client: Client, fields: object = {}): Promise<void> {
  const { status, text } = await client.request('PUT', PATH, { body: { requests: 100, windowSeconds: 60, ...fields } })
  if (status !== 200) throw new Error(text)
}

const change = (method: string, bodies: unknown[]): PrepareChange => async (client) => {
  await setLimits(client)
  return { read: PATH, method, path: PATH, bodies }
}

export const fixture: Fixture = {
  changes: {
    putLimits: change('PUT', [{ requests: 50, windowSeconds: 60 }, { requests: 40, windowSeconds: 60 }]),
    deleteLimits: change('DELETE', [undefined])
  },
  operations: {
    'put /lab/limits': ['putLimits', 'lab', 200],
    'get /lab/limits': ['getLimits', 'lab', 200, 'limits_not_found'],
    'delete /lab/limits': ['deleteLimits', 'lab', 204, 'limits_not_found']
  },
  keyedWrites: {
    deleteLimits: {
      prepare: async (client) => {
        await setLimits(client)
        return ['DELETE', PATH]
      },
      // Limits have no list.
      shows: '/lab/faults'
    }
  },
  errors: {
    limits_not_found: { status: 404, raise: async (_app, client) => await client.get(PATH) }
  }
}
