import { Type, type Static } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, ListQuery, MergePatch, ref, Text } from '../http/common-schemas.ts'

const fields = {
  name: Text(1, 255, 'Category name, a kind of animal', 'Cats'),
  description: Type.Optional(Text(0, 2000, 'Short description of the category', 'Own the place; you only pay for it'))
}

export const NewCategorySchema = Type.Object(fields, {
  $id: 'NewCategory', ...NO_ADDITIONAL_PROPERTIES, description: 'A category to create.'
})
export type NewCategory = Static<typeof NewCategorySchema>

export const CategoryUpdateSchema = MergePatch(
  'CategoryUpdate', fields, ' `description: null` clears the description.')
export type CategoryUpdate = Static<typeof CategoryUpdateSchema>

export const CategorySchema = Type.Object({ id: Id('Unique identifier assigned on creation', 2), ...fields }, {
  $id: 'Category', description: 'A category of pets.'
})
export type Category = Static<typeof CategorySchema>

const category = { category: ref(CategorySchema) }

export const categoryEvents = defineEvents('category', { created: category, updated: category, deleted: category })

export const CategoryParams = Type.Object({ categoryId: Id('Id of the category', 2) }, NO_ADDITIONAL_PROPERTIES)

export const CategoryQuery = ListQuery({})
