import { webhookList } from '../../src/webhooks/queries.ts'
import type { Answer } from '../support/app.ts'
import type { Fixture } from '../support/fixture.ts'
import { newWebhook } from '../support/fixtures.ts'

export const fixture: Fixture = {
  record: [{
    idName: 'webhookId',
    create: async (client) => await newWebhook(client),
    missingCode: 'webhook_not_found'
  }, {
    idName: 'attemptId',
    // Attempts are numbered from 1 for each webhook. Only a service that delivers makes some.
    create: async () => 1,
    missingCode: 'attempt_not_found'
  }],
  list: {
    definition: webhookList,
    insertRows: ({ from, account, time }) => `INSERT INTO webhooks (id, account_id, url, events, secret, created_at)
      SELECT i, ${account}, 'u', '[]', 's', ${time} ${from}`
  },
  changes: {
    updateWebhook: async (ada) => {
      const path = `/webhooks/${await newWebhook(ada)}`
      return { read: path, method: 'PATCH', path, bodies: [{ enabled: false }, { url: 'https://example.com/other' }] }
    },
    deleteWebhook: async (ada) => {
      const path = `/webhooks/${await newWebhook(ada)}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    }
  },
  operations: {
    'get /webhooks': ['listWebhooks', 'webhooks', 200],
    'post /webhooks': ['createWebhook', 'webhooks', 201, 'webhook_limit_reached'],
    'get /webhooks/{webhookId}': ['getWebhook', 'webhooks', 200, 'webhook_not_found'],
    'get /webhooks/{webhookId}/attempts': ['listWebhookAttempts', 'webhooks', 200, 'webhook_not_found'],
    'get /webhooks/{webhookId}/attempts/{attemptId}': [
      'getWebhookAttempt', 'webhooks', 200, 'attempt_not_found', 'webhook_not_found'
    ],
    'post /webhooks/{webhookId}/resend': [
      'resendEvents', 'webhooks', 202, 'events_expired', 'unknown_event', 'webhook_not_found'
    ],
    'patch /webhooks/{webhookId}': ['updateWebhook', 'webhooks', 200, 'webhook_not_found'],
    'delete /webhooks/{webhookId}': ['deleteWebhook', 'webhooks', 204, 'webhook_not_found'],
    'post /webhooks/{webhookId}/rotate': ['rotateWebhookSecret', 'webhooks', 200, 'webhook_not_found'],
    'post /webhooks/{webhookId}/test': ['testWebhook', 'webhooks', 202, 'webhook_not_found']
  },
  keyedWrites: {
    updateWebhook: {
      prepare: async (ada) => ['PATCH', `/webhooks/${await newWebhook(ada)}`, { enabled: false }],
      shows: '/webhooks'
    },
    deleteWebhook: { prepare: async (ada) => ['DELETE', `/webhooks/${await newWebhook(ada)}`], shows: '/webhooks' },
    resendEvents: {
      prepare: async (ada) => {
        const webhookId = await newWebhook(ada)
        await ada.post('/messages', { message: 'Hello' })
        return ['POST', `/webhooks/${webhookId}/resend`, { eventId: 1 }]
      },
      shows: '/webhooks'
    },
    testWebhook: { prepare: async (ada) => ['POST', `/webhooks/${await newWebhook(ada)}/test`], shows: '/webhooks' }
  },
  secretWrites: {
    createWebhook: async () => ['POST', '/webhooks', { url: 'https://example.com/' }],
    rotateWebhookSecret: async (ada) => ['POST', `/webhooks/${await newWebhook(ada)}/rotate`, undefined]
  },
  errors: {
    webhook_not_found: { status: 404, raise: async (_app, client) => await client.get('/webhooks/4711') },
    attempt_not_found: {
      status: 404, raise: async (_app, client) => await client.get(`/webhooks/${await newWebhook(client)}/attempts/1`)
    },
    unknown_event: {
      status: 409,
      raise: async (_app, client) => await client.post(`/webhooks/${await newWebhook(client)}/resend`, { eventId: 4711 })
    },
    webhook_limit_reached: {
      status: 409,
      raise: async (_app, client) => {
        const add = async (): Promise<Answer> => await client.post('/webhooks', { url: 'https://pets.example/hook' })
        for (let i = 0; i < 20; i++) await add()
        return await add()
      }
    }
  }
}
