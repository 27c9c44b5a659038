// `prisma`: the measured routes as Prisma's guides teach them, one call or one $transaction a request. On SQLite it has
// the adapter of the service, so that all servers use one driver.

import { PrismaPg } from '@prisma/adapter-pg'
import { sqliteAdapterFactory } from '../../../src/database/sqlite/adapter.ts'
import { PrismaClient as PostgresqlClient } from '../../../src/generated/postgresql/client.ts'
import { Prisma, PrismaClient } from '../../../src/generated/sqlite/client.ts'
import { serve } from './service.ts'
import { messageId } from './sqlite.ts'
import { Refusal, refusalOfCancellation, refusalOfOrder, replayOf, unchanged, unknownCategory } from './refusals.ts'
import {
  DELIVERY_MS, hasWebhooks, RECORD_MS, type Idempotency, type Order, type Pet, type Store, type StoredPet, type Written
} from './store.ts'

const url = process.env['DATABASE_URL']!
/** By default, a transaction that waits 2 s fails on a busy machine, and its answer would void the run. */
const transactionOptions = { maxWait: 10_000, timeout: 10_000 }
const prisma = url.startsWith('file:')
  ? new PrismaClient({ adapter: sqliteAdapterFactory(url), transactionOptions })
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
      return storedPetOf(await prisma.pet.findUnique({ where: { id, accountId } }))
    },
    async listPets (accountId, after, take, status) {
      const pets = await prisma.pet.findMany({
        where: { accountId, id: { gt: after }, ...(status && { status }) },
        orderBy: { id: 'asc' },
        take
      })
      return pets.map(petOf)
    },
    createPet: async (accountId, { name, categoryId, status = 'available' }, idempotency) =>
      await once<Pet>(prisma, accountId, idempotency, async (tx, now) => {
        if ((await tx.category.findUnique({ where: { id: categoryId, accountId } })) === null) return unknownCategory
        const pet = petOf(await tx.pet.create({ data: { accountId, name, categoryId, status } }))
        await append(tx, accountId, 'pet.created', now, { pet })
        return pet
      }),
    renamePet: async (accountId, id, name, versions) =>
      await prisma.$transaction(async (tx) => {
        const [renamed] = await tx.pet.updateManyAndReturn({
          where: { id, accountId, name: { not: name }, ...(versions && { version: { in: versions } }) },
          data: { name, version: { increment: 1 } }
        })
        if (renamed === undefined) {
          return unchanged(storedPetOf(await tx.pet.findUnique({ where: { id, accountId } })), versions)
        }
        const pet = petOf(renamed)
        const stock = await tx.inventoryItem.findUnique({ where: { petId: id } })
        const inventory =
          stock === null ? {} : { inventory: { petId: id, quantity: Number(stock.quantity), status: pet.status } }
        await append(tx, accountId, 'pet.updated', new Date(), { pet, ...inventory })
        return { ...pet, version: Number(renamed.version) }
      }),
    placeOrder: async (accountId, { petId, quantity = 1, complete = false }, idempotency) =>
      await once<Order>(prisma, accountId, idempotency, async (tx, now) => {
        const taken = await tx.inventoryItem.updateManyAndReturn({
          where: { petId, accountId, quantity: { gte: quantity }, pet: { status: 'available' } },
          data: { quantity: { decrement: quantity }, version: { increment: 1 } }
        })
        const [stock] = taken
        if (stock === undefined) {
          const pet = await tx.pet.findUnique({ where: { id: petId, accountId }, include: { inventory: true } })
          return refusalOfOrder(
            pet === null
              ? undefined
              : { status: pet.status, quantity: pet.inventory && Number(pet.inventory.quantity) },
            quantity
          )
        }
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
    cancelOrder: async (accountId, id) =>
      await prisma.$transaction(async (tx) => {
        const found = await tx.order.findUnique({ where: { id, accountId } })
        const refusal = refusalOfCancellation(found ?? undefined)
        if (refusal !== undefined) return refusal
        const { count } = await tx.order.deleteMany({ where: { id, complete: false } })
        if (count === 0) return refusalOfCancellation(undefined)
        const [petId, quantity] = [Number(found!.petId), Number(found!.quantity)]
        const stock = await tx.inventoryItem.update({
          where: { petId },
          data: { quantity: { increment: quantity }, version: { increment: 1 } },
          include: { pet: true }
        })
        const isMoved = Number(stock.quantity) === quantity
        const pet = petOf(isMoved
          ? await tx.pet.update({ where: { id: petId }, data: { status: 'available', version: { increment: 1 } } })
          : stock.pet)
        const now = new Date()
        const inventory = { petId, quantity: Number(stock.quantity), status: pet.status }
        const order: Order = { id, petId, quantity, complete: false }
        await append(tx, accountId, 'order.cancelled', now, { order, inventory })
        if (isMoved) await append(tx, accountId, 'pet.updated', now, { pet, inventory })
        return undefined
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

/** Runs a write in a transaction, with the look-up of its Idempotency-Key and the record of its response. */
async function once<Result> (
  prisma: PrismaClient, accountId: number, idempotency: Idempotency | undefined,
  work: (tx: Prisma.TransactionClient, now: Date) => Promise<Result | Refusal>
): Promise<Written<Result>> {
  const run = async (): Promise<Written<Result>> => await prisma.$transaction(async (tx) => {
    const now = new Date()
    if (idempotency === undefined) return await work(tx, now)
    const { key, fingerprint } = idempotency
    const where = { accountId_key: { accountId, key } }
    const stored = await tx.idempotencyRecord.findUnique({ where })
    if (stored !== null && stored.expiresAt >= now) return replayOf<Result>(stored, idempotency)
    if (stored !== null) await tx.idempotencyRecord.delete({ where })
    const result = await work(tx, now)
    if (result instanceof Refusal) return result
    const expiresAt = new Date(now.getTime() + RECORD_MS)
    const response = { record: JSON.stringify(result), etag: '"1"' }
    await tx.idempotencyRecord.create({ data: { accountId, key, fingerprint, ...response, createdAt: now, expiresAt } })
    return result
  })
  try {
    return await run()
  } catch (error) {
    // Another request with the same key was faster.
    if (error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002') return await run()
    throw error
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
  if (!hasWebhooks) return
  const webhooks = await tx.webhook.findMany({ where: { accountId, enabled: true, events: { contains: `"${type}"` } } })
  const giveUpAt = new Date(timestamp.getTime() + DELIVERY_MS)
  await tx.delivery.createMany({
    data: webhooks.map(({ id }) => ({ accountId, eventId: lastEventId, webhookId: id, nextTryAt: timestamp, giveUpAt }))
  })
}

function storedPetOf (pet: Parameters<typeof petOf>[0] & { version: bigint } | null): StoredPet | undefined {
  return pet === null ? undefined : { ...petOf(pet), version: Number(pet.version) }
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
