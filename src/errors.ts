import createError from '@fastify/error'

/**
 * Every error the service answers with, in the order of its status. The codes are public: a client
 * branches on them. `%s` is filled in where the error is thrown; a message says what is wrong and
 * what would be right, and never holds SQL, a path or a stack.
 */

// 400
export const InvalidJson = createError('invalid_json', 'The request body is not valid JSON: %s.', 400)
export const InvalidContentType = createError('invalid_content_type', 'Send the body as %s, without a content encoding.', 400)
export const ValidationFailed = createError('validation_failed', '%s.', 400)
export const BadRequest = createError('bad_request', '%s.', 400)

// 401
export const Unauthorized = createError('unauthorized', '%s.', 401)

// 403
export const ReadOnlyKey = createError('read_only_key', 'This API key may only read. Use a key that was created without readOnly.', 403)
export const SignupClosed = createError('signup_closed', 'This service opens no new accounts. Ask whoever runs it for an API key.', 403)

// 404
export const RouteNotFound = createError('route_not_found', 'There is nothing at this address. GET /openapi.json lists what there is.', 404)
export const PetNotFound = createError('pet_not_found', 'Your store has no pet with this id.', 404)
export const CategoryNotFound = createError('category_not_found', 'Your store has no category with this id.', 404)
export const OrderNotFound = createError('order_not_found', 'Your store has no order with this id.', 404)
export const InventoryNotFound = createError('inventory_not_found', 'The pet was never counted. PATCH its inventory entry with a quantity to begin.', 404)
export const MessageNotFound = createError('message_not_found', 'Your store has no message with this id.', 404)
export const ApiKeyNotFound = createError('api_key_not_found', 'Your account has no API key with this id.', 404)
export const WebhookNotFound = createError('webhook_not_found', 'Your store has no webhook with this id.', 404)

// 405
export const MethodNotAllowed = createError('method_not_allowed', 'This address does not take %s. The Allow header lists what it takes.', 405)

// 408
export const RequestTimeout = createError('request_timeout', 'The request did not arrive in time.', 408)

// 409
export const UnknownCategory = createError('unknown_category', 'categoryId names no category of your store. Create the category first.', 409)
export const UnknownPet = createError('unknown_pet', 'petId names no pet of your store.', 409)
export const LastApiKey = createError('last_api_key', 'This is the last unexpired key that may write. Create another before you revoke it.', 409)
export const WebhookLimitReached = createError('webhook_limit_reached', 'Your account has %s webhooks, and no more are allowed. Delete one first.', 409)
export const CategoryInUse = createError('category_in_use', 'The category still has pets. Move or delete them first.', 409)
export const PetInUse = createError('pet_in_use', 'Orders name this pet, so it stays.', 409)
export const PetNotAvailable = createError('pet_not_available', 'The pet is %s. Only an available pet can be ordered.', 409)
export const InsufficientStock = createError('insufficient_stock', '%s.', 409)
export const OrderAlreadyShipped = createError('order_already_shipped', 'The order is complete and cannot be %s any more.', 409)
export const InvalidStatusTransition = createError('invalid_status_transition', 'A pet that is %s cannot become %s%s.', 409)
export const IdempotencyKeyInUse = createError('idempotency_key_in_use', 'A request with this Idempotency-Key is still running. Try again in a moment.', 409)

// 410
export const OperationSunset = createError('operation_sunset', 'This operation ended on %s. Its successor is GET /pets?id={petId}.', 410)
export const EventsExpired = createError('events_expired', 'Events after this one are no longer held: %s. Read the lists again and follow from Event-Id.', 410)

// 412
export const PreconditionFailed = createError('precondition_failed', 'The record is not as %s expects it. Read it again and decide anew.', 412)

// 413, 414, 431
export const PayloadTooLarge = createError('payload_too_large', 'The request body is larger than %s bytes.', 413)
export const UriTooLong = createError('uri_too_long', 'The address of the request is longer than %s characters.', 414)
export const HeadersTooLarge = createError('headers_too_large', 'The header fields of the request are larger than %s bytes.', 431)

// 422
export const IdempotencyKeyReused = createError('idempotency_key_reused', 'This Idempotency-Key was used for another request. Take a new key for a new request.', 422)

// 429
export const RateLimited = createError('rate_limited', 'Too many requests. Try again in %s seconds.', 429)

// 500, 503
export const InternalError = createError('internal_error', 'Something went wrong on our side. Quote the Request-Id when you report it.', 500)
export const Overloaded = createError('overloaded', 'More requests are waiting than the service can take. Try again shortly.', 503)
export const DatabaseUnavailable = createError('database_unavailable', 'The database did not answer in time. Try again; a write may have taken effect, so repeat it with its Idempotency-Key.', 503)
export const ShuttingDown = createError('shutting_down', 'The service is going down. Try again shortly.', 503)
