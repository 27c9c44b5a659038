import { findRecord, listOf, listRecords } from '../database/sql/record-queries.ts'
import { pets } from '../generated/tables.ts'
import { PetSchema } from './schemas.ts'

export const petList = listOf(pets, PetSchema, ['status', 'categoryId', 'id'])
export const findPet = findRecord(pets, PetSchema)
export const listPets = listRecords(petList)
