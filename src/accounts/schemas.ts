import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, Id, ListQuery, Text, Timestamp } from '../http/common-schemas.ts'

const name = Text(1, 255, 'Name of the store', "Ada's Animals")
const email = Text(1, 255, 'A contact, neither verified nor unique', 'ada@example.com')

const expiresIn = Type.Integer({
  minimum: 60,
  maximum: 2_592_000,
  description: 'Time after which the account is deleted with all its records, in seconds of real time. Default: ' +
    'never, unless the service limits the time of all accounts',
  example: 3_600
})

export const NewAccountSchema = Type.Object({
  name,
  email: Type.Optional(email),
  expiresIn: Type.Optional(expiresIn)
}, {
  $id: 'NewAccount',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'An account to create.',
  // Without expiresIn: readers who paste the example keep their store.
  example: { name: "Ada's Animals", email: 'ada@example.com' }
})
export type NewAccount = Static<typeof NewAccountSchema>

const account = {
  id: Id('Identifier of the account', 1),
  name,
  createdAt: Timestamp('Creation time')
}
const optionalOfAccount = {
  email: Type.Optional(email),
  expiresAt: Type.Optional(Timestamp(
    'Time from which the account is deleted, in real time whatever its clock shows', '2026-11-21T11:00:00.000Z'
  ))
}

const apiKey = Type.String({
  description: 'The API key, shown only in this response. Send it as `Authorization: Bearer <apiKey>`',
  example: 'psk_8Jw3kQ2x_N4v0XcT7bLr2YpGm5sEaHd9KfUqZ1iWo3RkPzD'
})

export const AccountSchema = Type.Object({ ...account, ...optionalOfAccount }, {
  $id: 'Account', description: 'A store. All other records belong to an account.'
})

export const AccountWithKeySchema = Type.Object({ ...account, apiKey, ...optionalOfAccount }, {
  $id: 'AccountWithKey', description: 'A new account with its first API key.'
})
export type AccountWithKey = Static<typeof AccountWithKeySchema>

const label = Text(1, 255, 'Purpose of the key', 'Warehouse scanner')
const READ_ONLY = { description: 'If true, the key can only read', example: false }
const expiresAt = Timestamp('Expiry time', '2027-11-21T10:00:00.000Z')

export const NewApiKeySchema = Type.Object({
  label: Type.Optional(label),
  readOnly: Type.Optional(Type.Boolean({ ...READ_ONLY, description: `${READ_ONLY.description}. Default: false` })),
  expiresAt: Type.Optional(expiresAt)
}, {
  $id: 'NewApiKey',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'An API key to create. If `expiresAt` is in the past, the new key is already expired.'
})
export type NewApiKey = Static<typeof NewApiKeySchema>

const key = {
  id: Id('Identifier of the key', 1),
  prefix: Type.String({ description: 'The 8 characters after `psk_`, for recognising the key', example: '8Jw3kQ2x' }),
  readOnly: Type.Boolean(READ_ONLY),
  createdAt: Timestamp('Creation time')
}
const optionalOfKey = {
  label: Type.Optional(label),
  lastUsedAt: Type.Optional(Timestamp('Time of the last use, to the hour', '2026-11-21T10:00:00.000Z')),
  expiresAt: Type.Optional(expiresAt)
}

export const ApiKeySchema = Type.Object({ ...key, ...optionalOfKey }, {
  $id: 'ApiKey', description: 'An API key of the account, without its secret.'
})
export type ApiKey = Static<typeof ApiKeySchema>

export const ApiKeyWithSecretSchema = Type.Object({ ...key, apiKey, ...optionalOfKey }, {
  $id: 'ApiKeyWithSecret', description: 'A new API key with its secret.'
})
export type ApiKeyWithSecret = Static<typeof ApiKeyWithSecretSchema>

export const KeyParams = Type.Object({ keyId: Id('Id of the key', 1) }, NO_ADDITIONAL_PROPERTIES)

export const KeyQuery = ListQuery({})
