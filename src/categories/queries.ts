import { findRecord, listOf, listRecords } from '../database/sql/record-queries.ts'
import { categories } from '../generated/tables.ts'
import { CategorySchema } from './schemas.ts'

export const categoryList = listOf(categories, CategorySchema)
export const findCategory = findRecord(categories, CategorySchema)
export const listCategories = listRecords(categoryList)
