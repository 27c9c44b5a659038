import { etagOf, nextVersion } from '../database/entity-tag.ts'
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
    tx.insert(categoryTable, inputs.map(({ account, category }, i) =>
      ({ id: ids[i]!, account_id: account, ...category })))
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
  run: async (tx, inputs) => await forEachCategory(tx, inputs, async (category, { patch }, prisma) => {
    const { name = category.name, description = category.description } = patch
    if (name === category.name && description === category.description) {
      return { record: categoryRecord(category), etag: etagOf(category.version) }
    }
    const version = nextVersion(category.version, category.versionFloor)
    await prisma.category.update({ where: { id: category.id }, data: { name, description, version } })
    const record = categoryRecord({ ...category, name, description })
    return { record, etag: etagOf(version), events: [categoryEvents.updated({ category: record })] }
  })
}

export const deleteCategory: Command<CategoryRef, undefined> = {
  name: 'deleteCategory',
  locks,
  run: async (tx, inputs) => await forEachCategory(tx, inputs, async (category, _input, prisma) => {
    const { id } = category
    const pet = await prisma.pet.findFirst({ where: { categoryId: id }, select: { id: true } })
    if (pet !== null) return new CategoryInUse()
    await prisma.category.delete({ where: { id } })
    tx.owners(categoryTable).delete(id)
    return { record: undefined, events: [categoryEvents.deleted({ category: categoryRecord(category) })] }
  })
}

interface LoadedCategory { id: number, name: string, description: string | null, version: number, versionFloor: bigint }

type CategoryChange<Input, Record> = (
  category: LoadedCategory, input: Input, prisma: TransactionClient
) => Promise<CommandResult<Record>>

/**
 * Applies a change to the category of each input, each after the effects of those before it. A category that the
 * account does not have, or a failed precondition, refuses the input.
 */
async function forEachCategory<Input extends CategoryRef, Record> (
  tx: Transaction, inputs: Input[], change: CategoryChange<Input, Record>
): Promise<Array<CommandResult<Record>>> {
  const prisma = await tx.prisma()
  return await inSequence(inputs, async (input) => {
    const { account, categoryId: id, conditions } = input
    const row = await prisma.category.findUnique({ where: { id, accountId: account } })
    if (row === null) return new CategoryNotFound()
    const category = { ...row, id, version: Number(row.version) }
    return checkPreconditions(conditions, etagOf(category.version)) ?? await change(category, input, prisma)
  })
}

function categoryRecord ({ id, name, description }: LoadedCategory): Category {
  return description === null ? { id, name } : { id, name, description }
}
