import { defineError } from '../errors.ts'

export const PetNotFound = defineError('pet_not_found', 'Your store has no pet with this id.', 404)
export const UnknownPet = defineError('unknown_pet', 'Your store has no pet with the id in petId.', 409)
export const PetInUse = defineError('pet_in_use', 'The pet has orders and cannot be deleted.', 409)
export const PetNotAvailable = defineError(
  'pet_not_available', 'The pet is %s. You can order only an available pet.', 409, 'sold')
export const InvalidStatusTransition = defineError(
  'invalid_status_transition', 'The status of a pet cannot change from %s to %s%s.', 409, 'sold', 'available', '')
export const OperationSunset = defineError(
  'operation_sunset', 'This operation ended on %s. Use GET /pets?id={petId} instead.', 410, '2030-12-05')
