import { etagOf } from '../database/entity-tag.ts'
import { children, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { categories, pets, type CategoryRow } from '../generated/tables.ts'
import { requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import { CategoryInUse, CategoryNotFound } from './errors.ts'
import { categoryEvents, type Category, type CategoryUpdate, type NewCategory } from './schemas.ts'

export const createCategory: Write<{ category: NewCategory }, Category> = {
  name: 'createCategory',
  creates: [categories],
  decide ({ category: { name, description } }, rows) {
    const category = categoryRecord(rows.insert(categories, { name, description: description ?? null }))
    return { record: category, etag: etagOf(1), events: [categoryEvents.created({ category })] }
  }
}

interface CategoryRef { categoryId: number, conditions: Conditions }

export const updateCategory: Write<CategoryRef & { patch: CategoryUpdate }, Category> = {
  name: 'updateCategory',
  needs: ({ categoryId }) => [forUpdate(categories, categoryId)],
  decide ({ categoryId, patch, conditions }, rows) {
    const before = rows.get(categories, categoryId)
    if (before === undefined) throw new CategoryNotFound()
    requirePreconditions(conditions, etagOf(before.version))
    const { name = before.name, description = before.description } = patch
    const changed = rows.update(categories, before, { name, description })
    const category = categoryRecord(changed)
    const events = changed === before ? [] : [categoryEvents.updated({ category })]
    return { record: category, etag: etagOf(changed.version), events }
  }
}

export const deleteCategory: Write<CategoryRef, undefined> = {
  name: 'deleteCategory',
  needs: ({ categoryId }) => [forUpdate(categories, categoryId), children(pets, { categoryId })],
  decide ({ categoryId, conditions }, rows) {
    const category = rows.get(categories, categoryId)
    if (category === undefined) throw new CategoryNotFound()
    requirePreconditions(conditions, etagOf(category.version))
    if (rows.has(pets, { categoryId })) throw new CategoryInUse()
    rows.delete(categories, category)
    return { record: undefined, events: [categoryEvents.deleted({ category: categoryRecord(category) })] }
  }
}

function categoryRecord ({ id, name, description }: Readonly<CategoryRow>): Category {
  return description === null ? { id, name } : { id, name, description }
}
