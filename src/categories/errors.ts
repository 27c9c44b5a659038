import { defineError } from '../errors.ts'

export const CategoryNotFound = defineError('category_not_found', 'Your store has no category with this id.', 404)
export const UnknownCategory = defineError(
  'unknown_category', 'Your store has no category with the id in categoryId. Create the category first.', 409)
export const CategoryInUse = defineError(
  'category_in_use', 'The category still has pets. Move or delete them first.', 409)
