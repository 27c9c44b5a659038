import { etagOf } from '../database/entity-tag.ts'
import type { Command, CommandResult, RowLock } from '../database/group-commit/command.ts'
import { inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import type { TransactionClient } from '../database/prisma-client.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { CategoryInUse, CategoryNotFound } from './errors.ts'
import { categoryTable } from './queries.ts'
import { categoryEvents, type Category, type CategoryUpdate, type NewCategory } from './schemas.ts'

/** Creating is set-based: one statement for all requests of a group. */
export const createCategory: Command<{ account: number, category: NewCategory }, Category> = {
  name: 'createCategory',
  creates: categoryTable,
  async run (tx, inputs) {
    const ids = await tx.allocateIds(categoryTable, inputs.length)
    tx.insert(categoryTable, inputs.map(({ account, category }, i) => ({ id: ids[i]!, account_id: account, ...category })))
    return inputs.map(({ account, category: fields }, i) => {
      const category = { id: ids[i]!, ...fields }
      tx.owners(categoryTable).set(category.id, account)
      return { record: category, etag: etagOf(1), events: [categoryEvents.created({ category })] }
    })
  }
}

interface CategoryRef { account: number, categoryId: number, conditions: Conditions }

const locks = ({ categoryId }: CategoryRef): RowLock[] => [{ table: categoryTable, ids: [categoryId], mode: 'update' }]

/** Changes and deletions are rare, so they use Prisma's models, one category after the other. */
export const updateCategory: Command<CategoryRef & { patch: CategoryUpdate }, Category> = {
  name: 'updateCategory',
  locks,
  run: async (tx, inputs) => await inSequence(inputs, async (input) => await withCategory(tx, input, async (category, prisma) => {
    const { name = category.name, description = category.description } = input.patch
    if (name === category.name && description === category.description) {
      return { record: categoryRecord(category), etag: etagOf(category.version) }
    }
    const version = category.version + 1
    await prisma.category.update({ where: { id: category.id }, data: { name, description, version } })
    const record = categoryRecord({ ...category, name, description })
    return { record, etag: etagOf(version), events: [categoryEvents.updated({ category: record })] }
  }))
}

export const deleteCategory: Command<CategoryRef, undefined> = {
  name: 'deleteCategory',
  locks,
  run: async (tx, inputs) => await inSequence(inputs, async (input) => await withCategory(tx, input, async (category, prisma) => {
    const { id } = category
    if (await prisma.pet.findFirst({ where: { categoryId: id }, select: { id: true } }) !== null) return new CategoryInUse()
    await prisma.category.delete({ where: { id } })
    tx.owners(categoryTable).delete(id)
    return { record: undefined, events: [categoryEvents.deleted({ category: categoryRecord(category) })] }
  }))
}

interface LoadedCategory { id: number, name: string, description: string | null, version: number }

/** Applies a change to the account's category, unless there is no such category or a precondition fails. */
async function withCategory<Record> (
  tx: Transaction, { account, categoryId, conditions }: CategoryRef,
  change: (category: LoadedCategory, prisma: TransactionClient) => Promise<CommandResult<Record>>
): Promise<CommandResult<Record>> {
  const prisma = await tx.prisma()
  const row = await prisma.category.findUnique({ where: { id: categoryId, accountId: account } })
  if (row === null) return new CategoryNotFound()
  const { id, name, description, version } = row
  return checkPreconditions(conditions, etagOf(version)) ??
    await change({ id: Number(id), name, description, version: Number(version) }, prisma)
}

function categoryRecord ({ id, name, description }: LoadedCategory): Category {
  return description === null ? { id, name } : { id, name, description }
}
