import type { Client } from '../support/app.ts'
import type { Fixture } from '../support/fixture.ts'

/** Turns the journal of an account on. */
export async function turnOn (client: Client, keep = 10_000): Promise<void> {
  const { status, text } = await client.request('PUT', '/lab/journal', { body: { keep } })
  if (status !== 200) throw new Error(text)
}

/** Makes a request of an account whose journal is on. @returns its id in the journal */
export async function newRequest (client: Client): Promise<number> {
  await turnOn(client)
  await client.get('/categories')
  const { body } = await client.get('/lab/requests?operation=listCategories')
  return body[0].id
}

export const fixture: Fixture = {
  record: { idName: 'requestId', create: newRequest, missingCode: 'request_not_found' },
  changes: {
    putJournal: async (ada) => {
      await turnOn(ada)
      const path = '/lab/journal'
      return { read: path, method: 'PUT', path, bodies: [{ keep: 5 }, { keep: 6 }] }
    },
    deleteJournal: async (ada) => {
      await turnOn(ada)
      return { read: '/lab/journal', method: 'DELETE', path: '/lab/journal', bodies: [undefined] }
    },
    deleteRequests: async (ada) => {
      await newRequest(ada)
      return { read: '/lab/requests', method: 'DELETE', path: '/lab/requests', bodies: [undefined] }
    }
  },
  operations: {
    'put /lab/journal': ['putJournal', 'lab', 200],
    'get /lab/journal': ['getJournal', 'lab', 200, 'journal_not_found'],
    'delete /lab/journal': ['deleteJournal', 'lab', 204, 'journal_not_found'],
    'get /lab/requests': ['listRequests', 'lab', 200, 'stream_limit_reached'],
    'delete /lab/requests': ['deleteRequests', 'lab', 204],
    'get /lab/requests/{requestId}': ['getRequest', 'lab', 200, 'request_not_found'],
    'post /lab/requests/verify': ['verifyRequests', 'lab', 200]
  },
  keyedWrites: {
    deleteJournal: {
      prepare: async (ada) => {
        await turnOn(ada)
        return ['DELETE', '/lab/journal']
      },
      shows: '/lab/journal'
    },
    deleteRequests: {
      prepare: async (ada) => {
        await newRequest(ada)
        return ['DELETE', '/lab/requests']
      },
      shows: '/lab/requests'
    }
  },
  errors: {
    journal_not_found: { status: 404, raise: async (_app, client) => await client.get('/lab/journal') },
    request_not_found: { status: 404, raise: async (_app, client) => await client.get('/lab/requests/4711') }
  }
}
