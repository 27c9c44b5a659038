import { etagOf, recordOf } from '../database/record.ts'
import { children, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { categories, pets } from '../generated/tables.ts'
import { requireRow, type RecordRef } from '../http/record-routes.ts'
import { CategoryInUse, CategoryNotFound } from './errors.ts'
import { categoryEvents, CategorySchema, type Category, type CategoryUpdate, type NewCategory } from './schemas.ts'

export const createCategory: Write<{ category: NewCategory }, Category> = {
  name: 'createCategory',
  creates: [categories],
  decide (input, rows) {
    const category = recordOf(CategorySchema, rows.insert(categories, input.category))
    return { record: category, etag: etagOf(1), events: [categoryEvents.created({ category })] }
  }
}

type CategoryRef = RecordRef<'categoryId'>

export const updateCategory: Write<CategoryRef & { patch: CategoryUpdate }, Category> = {
  name: 'updateCategory',
  needs: ({ categoryId }) => [forUpdate(categories, categoryId)],
  decide ({ categoryId, patch, conditions }, rows) {
    const before = requireRow(rows, categories, categoryId, CategoryNotFound, conditions)
    const changed = rows.update(categories, before, patch)
    const category = recordOf(CategorySchema, changed)
    const events = changed === before ? [] : [categoryEvents.updated({ category })]
    return { record: category, etag: etagOf(changed.version), events }
  }
}

export const deleteCategory: Write<CategoryRef, undefined> = {
  name: 'deleteCategory',
  needs: ({ categoryId }) => [forUpdate(categories, categoryId), children(pets, { categoryId })],
  decide ({ categoryId, conditions }, rows) {
    const category = requireRow(rows, categories, categoryId, CategoryNotFound, conditions)
    if (rows.has(pets, { categoryId })) throw new CategoryInUse()
    rows.delete(categories, category)
    return { record: undefined, events: [categoryEvents.deleted({ category: recordOf(CategorySchema, category) })] }
  }
}
