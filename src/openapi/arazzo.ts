import type { SharedDocument } from './share-components.ts'

interface Step { stepId: string, description: string, operationId: string, [member: string]: unknown }

const ok = (status: number): object => ({ condition: `$statusCode == ${status}` })
const is = (condition: string): object => ({ condition })

/** The key of the account that the first step of each workflow opens. */
const AUTHORIZATION = { name: 'Authorization', in: 'header', value: 'Bearer {$steps.openAccount.outputs.apiKey}' }

/** Returns a step that expects a status, and sends the key of the account. */
function step (
  stepId: string, operationId: string, description: string, status: number,
  { parameters = [], body, criteria = [], outputs }: StepParts = {}
): Step {
  return {
    stepId,
    description,
    operationId,
    parameters: [AUTHORIZATION, ...parameters],
    ...body === undefined ? {} : { requestBody: { contentType: 'application/json', payload: body } },
    successCriteria: [ok(status), ...criteria.map(is)],
    ...outputs === undefined ? {} : { outputs }
  }
}

interface StepParts {
  parameters?: Array<{ name: string, in: string, value: unknown }>
  body?: object
  /** Conditions on the response. */
  criteria?: string[]
  outputs?: Record<string, string>
}

const header = (name: string, value: string) => ({ name, in: 'header', value })
const query = (name: string, value: unknown) => ({ name, in: 'query', value })
const path = (name: string, value: string) => ({ name, in: 'path', value })

/** Opens an account of its own for each run, so that workflows need no input and disturb no store. */
const openAccount: Step = {
  stepId: 'openAccount',
  description: 'Open an account, which is an empty store. The response contains its API key.',
  operationId: 'createAccount',
  requestBody: { contentType: 'application/json', payload: { name: 'Arazzo store' } },
  successCriteria: [ok(201)],
  outputs: { apiKey: '$response.body#/apiKey' }
}

/** The steps that put a pet on sale. */
const stockAPet: Step[] = [
  step('addCategory', 'createCategory', 'Add a category.', 201, {
    body: { name: 'Dogs' }, outputs: { categoryId: '$response.body#/id' }
  }),
  step('addPet', 'createPet', 'Add a pet to the category.', 201, {
    body: { name: 'Rex', categoryId: '$steps.addCategory.outputs.categoryId' }, outputs: { petId: '$response.body#/id' }
  }),
  step('countStock', 'updateInventory', 'Count its stock. Only a counted pet can be ordered.', 200, {
    parameters: [path('petId', '$steps.addPet.outputs.petId')],
    body: { quantity: 3 },
    criteria: ["$response.body#/status == 'available'"]
  })
]

const order = { petId: '$steps.addPet.outputs.petId', quantity: 2 }

const WORKFLOWS = [
  {
    workflowId: 'quickstart',
    summary: 'Send a first message',
    steps: [
      openAccount,
      step('sendMessage', 'createMessage', 'Send a message.', 201, {
        body: { message: 'Hello' },
        criteria: ["$response.body#/status == 'queued'"],
        outputs: { messageId: '$response.body#/id' }
      }),
      step('readMessage', 'getMessage', 'Read it, and see its status.', 200, {
        parameters: [path('messageId', '$steps.sendMessage.outputs.messageId')],
        criteria: ["$response.body#/message == 'Hello'"]
      })
    ]
  },
  {
    workflowId: 'order',
    summary: 'Stock a pet, order it and cancel the order',
    steps: [
      openAccount,
      ...stockAPet,
      step('placeOrder', 'placeOrder', 'Order two units. They leave the stock at once.', 201, {
        body: order, outputs: { orderId: '$response.body#/id' }
      }),
      step('readStock', 'getInventoryItem', 'One unit is left.', 200, {
        parameters: [path('petId', '$steps.addPet.outputs.petId')], criteria: ['$response.body#/quantity == 1']
      }),
      step('cancelOrder', 'cancelOrder', 'Cancel the order. Its units return.', 204, {
        parameters: [path('orderId', '$steps.placeOrder.outputs.orderId')]
      }),
      step('readStockAgain', 'getInventoryItem', 'All units are back.', 200, {
        parameters: [path('petId', '$steps.addPet.outputs.petId')], criteria: ['$response.body#/quantity == 3']
      })
    ]
  },
  {
    workflowId: 'retry',
    summary: 'Repeat a write whose response was lost',
    description: 'Send the same request with the same `Idempotency-Key`: it takes effect once.',
    steps: [
      openAccount,
      ...stockAPet,
      step('placeOrder', 'placeOrder', 'Order two units. Suppose that the response is lost.', 201, {
        parameters: [header('Idempotency-Key', 'order-1')], body: order, outputs: { orderId: '$response.body#/id' }
      }),
      step('repeatOrder', 'placeOrder', 'Send the request again. The response is that of the first order.', 201, {
        parameters: [header('Idempotency-Key', 'order-1')],
        body: order,
        criteria: [
          "$response.header.Idempotency-Replayed == 'true'",
          '$response.body#/id == $steps.placeOrder.outputs.orderId'
        ]
      }),
      step('readStock', 'getInventoryItem', 'The stock was reduced once.', 200, {
        parameters: [path('petId', '$steps.addPet.outputs.petId')], criteria: ['$response.body#/quantity == 1']
      })
    ]
  },
  {
    workflowId: 'mirror',
    summary: 'Mirror a store by its events',
    description: 'Read the number of the newest event, then the lists, and then follow the events from that number.',
    steps: [
      openAccount,
      ...stockAPet,
      step('readPosition', 'listEvents', 'Read the number of the newest event from Event-Id.', 200, {
        parameters: [query('limit', 1)], outputs: { position: '$response.header.Event-Id' }
      }),
      step('readPets', 'listPets', 'Read all lists. Events since the position may be in them already.', 200, {
        criteria: ["$response.body#/0/name == 'Rex'"]
      }),
      step('changePet', 'updatePet', 'Another client changes the pet.', 200, {
        parameters: [path('petId', '$steps.addPet.outputs.petId')], body: { name: 'Waldi' }
      }),
      step('followFeed', 'listEvents', 'Read the events after the position, and apply them.', 200, {
        parameters: [query('after', '$steps.readPosition.outputs.position')],
        criteria: ["$response.body#/0/type == 'pet.updated'", "$response.body#/0/data/pet/name == 'Waldi'"]
      })
    ]
  },
  {
    workflowId: 'pages',
    summary: 'Page through a list',
    description: 'The cursor of the events is the number of the last one. That of other lists is in the `Link` header.',
    steps: [
      openAccount,
      ...stockAPet,
      step('readFirstPage', 'listEvents', 'Read two events.', 200, {
        parameters: [query('limit', 2)],
        criteria: ['$response.body#/0/id == 1'],
        outputs: { last: '$response.body#/1/id' }
      }),
      step('readNextPage', 'listEvents', 'Read the events after the last one of the page.', 200, {
        parameters: [query('limit', 2), query('after', '$steps.readFirstPage.outputs.last')],
        criteria: ['$response.body#/0/id == 3']
      })
    ]
  }
]

/** Returns the workflows as an Arazzo document: how to use the operations of the OpenAPI document together. */
export function toArazzo ({ info, servers }: SharedDocument): object {
  return {
    arazzo: '1.0.1',
    info: {
      title: `${info.title} workflows`,
      version: info.version,
      summary: 'Operations in the order in which clients use them. Each workflow opens a store of its own.'
    },
    sourceDescriptions: [{ name: 'petstore', url: `${servers[0]!.url}/openapi.json`, type: 'openapi' }],
    workflows: WORKFLOWS
  }
}
