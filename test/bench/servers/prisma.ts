// `prisma`: the measured routes as Prisma's guides teach them, one call or one $transaction a request. On SQLite it has
// the adapter of the service, so that all servers use one driver.

import { PrismaPg } from '@prisma/adapter-pg'
import { SqliteAdapterFactory } from '../../../src/database/sqlite/adapter.ts'
import { PrismaClient as PostgresqlClient } from '../../../src/generated/postgresql/client.ts'
import { Prisma, PrismaClient } from '../../../src/generated/sqlite/client.ts'
import { serve } from './service.ts'
import { messageId } from './sqlite.ts'
import { refusalOf, type Order, type Pet, type Store } from './store.ts'

const url = process.env['DATABASE_URL']!
/** By default, a transaction that waits 2 s fails on a busy machine, and its answer would void the run. */
const transactionOptions = { maxWait: 10_000, timeout: 10_000 }
const prisma = url.startsWith('file:')
  ? new PrismaClient({ adapter: new SqliteAdapterFactory(url), transactionOptions })
  : (new PostgresqlClient({
      adapter: new PrismaPg({ connectionString: url, max: 10 }),
      transactionOptions
    }) as unknown as PrismaClient)
await serve(storeOf(prisma))

function storeOf (prisma: PrismaClient): Store {
  return {
    async findKey (hash) {
      const key = await prisma.apiKey.findUnique({ where: { hash } })
      if (key === null) return undefined
      return {
        account: Number(key.accountId),
        key: Number(key.id),
        readOnly: key.readOnly,
        expiresAt: key.expiresAt?.toISOString() ?? null,
        lastUsedAt: key.lastUsedAt?.toISOString() ?? null
      }
    },
    markKeyUsed: async (key, at) => await prisma.apiKey.update({ where: { id: key }, data: { lastUsedAt: at } }),
    async findPet (accountId, id) {
      const pet = await prisma.pet.findUnique({ where: { id, accountId } })
      return pet === null ? undefined : { ...petOf(pet), version: Number(pet.version) }
    },
    async listPets (accountId, after, take, status) {
      const pets = await prisma.pet.findMany({
        where: { accountId, id: { gt: after }, ...(status && { status }) },
        orderBy: { id: 'asc' },
        take
      })
      return pets.map(petOf)
    },
    createPet: async (accountId, { name, categoryId, status = 'available' }) =>
      await prisma.$transaction(async (tx) => {
        if ((await tx.category.findUnique({ where: { id: categoryId, accountId } })) === null) {
          return 'unknown_category'
        }
        const pet = petOf(await tx.pet.create({ data: { accountId, name, categoryId, status } }))
        await append(tx, accountId, 'pet.created', new Date(), { pet })
        return pet
      }),
    placeOrder: async (accountId, { petId, quantity = 1, complete = false }) =>
      await prisma.$transaction(async (tx) => {
        const taken = await tx.inventoryItem.updateManyAndReturn({
          where: { petId, accountId, quantity: { gte: quantity }, pet: { status: 'available' } },
          data: { quantity: { decrement: quantity }, version: { increment: 1 } }
        })
        const [stock] = taken
        if (stock === undefined) {
          const pet = await tx.pet.findUnique({ where: { id: petId, accountId }, include: { inventory: true } })
          return refusalOf(
            pet === null
              ? undefined
              : { status: pet.status, quantity: pet.inventory && Number(pet.inventory.quantity) }
          )
        }
        const now = new Date()
        const { id } = await tx.order.create({ data: { accountId, petId, quantity, complete } })
        const order: Order = { id: Number(id), petId, quantity, complete }
        const moved = stock.quantity > 0 ? undefined : await emptied(tx, petId)
        const data = {
          order,
          inventory: { petId, quantity: Number(stock.quantity), status: moved?.status ?? 'available' }
        }
        await append(tx, accountId, 'order.placed', now, data)
        if (complete) await append(tx, accountId, 'order.completed', now, data)
        if (moved !== undefined) {
          await append(tx, accountId, 'pet.updated', now, { pet: moved, inventory: data.inventory })
        }
        return order
      }),
    createMessage: async (accountId, text) =>
      await prisma.$transaction(async (tx) => {
        const createdAt = new Date()
        // The id contains the position, which the database assigns.
        const { position } = await tx.message.create({
          data: { id: messageId(0), accountId, message: text, createdAt }
        })
        const { id } = await tx.message.update({ where: { position }, data: { id: messageId(Number(position)) } })
        const message = { id, message: text, status: 'queued' as const, createdAt: createdAt.toISOString() }
        await append(tx, accountId, 'message.created', createdAt, { message })
        return message
      }),
    settleMessages: async (take) =>
      await prisma.$transaction(async (tx) => {
        const messages = await tx.message.findMany({
          where: { status: 'queued', waiting: 0 },
          orderBy: { position: 'asc' },
          take
        })
        const found = { position: { in: messages.map(({ position }) => position) } }
        await tx.message.updateMany({ where: found, data: { status: 'delivered', version: { increment: 1 } } })
        const timestamp = new Date()
        for (const accountId of new Set(messages.map(({ accountId }) => accountId))) {
          const own = messages.filter((message) => message.accountId === accountId)
          const { lastEventId } = await tx.account.update({
            where: { id: accountId },
            data: { lastEventId: { increment: own.length } }
          })
          await tx.event.createMany({
            data: own.map(({ id, message, createdAt }, i) => ({
              accountId,
              id: Number(lastEventId) - own.length + 1 + i,
              type: 'message.delivered',
              timestamp,
              data: JSON.stringify({ message: { id, message, status: 'delivered', createdAt } })
            }))
          })
        }
        return messages.length
      }),
    close: async () => {
      await prisma.$disconnect()
    }
  }
}

async function emptied (tx: Prisma.TransactionClient, petId: number): Promise<Pet> {
  const open = await tx.order.findFirst({ where: { petId, complete: false } })
  return petOf(
    await tx.pet.update({
      where: { id: petId },
      data: { status: open === null ? 'sold' : 'pending', version: { increment: 1 } }
    })
  )
}

async function append (
  tx: Prisma.TransactionClient,
  accountId: number,
  type: string,
  timestamp: Date,
  data: object
): Promise<void> {
  const { lastEventId } = await tx.account.update({
    where: { id: accountId },
    data: { lastEventId: { increment: 1 } }
  })
  await tx.event.create({ data: { accountId, id: lastEventId, type, timestamp, data: JSON.stringify(data) } })
}

function petOf ({
  id,
  name,
  categoryId,
  status
}: {
  id: bigint
  name: string
  categoryId: bigint
  status: Pet['status']
}): Pet {
  return { id: Number(id), name, categoryId: Number(categoryId), status }
}
