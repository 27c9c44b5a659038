import type { TSchema } from '@sinclair/typebox'
import * as accounts from './accounts/schemas.ts'
import * as categories from './categories/schemas.ts'
import * as deliveries from './deliveries/schemas.ts'
import * as events from './events/schemas.ts'
import * as inventory from './inventory/schemas.ts'
import * as messages from './messages/schemas.ts'
import * as orders from './orders/schemas.ts'
import * as pets from './pets/schemas.ts'
import * as webhooks from './webhooks/schemas.ts'
import { ErrorSchema, PetStatusSchema } from './http/common-schemas.ts'

/** Every named schema: the components of the OpenAPI document. */
export const components: TSchema[] = [
  ErrorSchema,
  PetStatusSchema,
  ...[accounts, pets, categories, orders, inventory, messages, events, deliveries, webhooks]
    .flatMap((schemas) => Object.values(schemas).flat() as TSchema[])
    .filter(({ $id }) => $id !== undefined)
]
