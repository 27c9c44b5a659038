import { defineError } from '../errors.ts'

export const MessageNotFound = defineError('message_not_found', 'Your store has no message with this id.', 404)
