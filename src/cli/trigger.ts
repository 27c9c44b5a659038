import { InvalidArgumentError, type Command } from 'commander'
import type { Category, Client, Order, Pet } from '../client/client.ts'
import { printable } from '../monitoring/printable.ts'
import { addServiceOptions, newestEvent, withService, type ServiceOptions } from './service-client.ts'

/** What makes an event of each type that a client can cause, with records of its own. */
const TRIGGERS: Record<string, (client: Client) => Promise<unknown>> = {
  'category.created': newCategory,
  'category.updated': async (client) =>
    await client.updateCategory((await newCategory(client)).id, { description: 'Our quietest pets' }),
  'category.deleted': async (client) => { await client.deleteCategory((await newCategory(client)).id) },
  'pet.created': newPet,
  'pet.updated': async (client) => await client.updatePet((await newPet(client)).id, { name: 'Max' }),
  'pet.deleted': async (client) => { await client.deletePet((await newPet(client)).id) },
  'inventory.counted': stockedPet,
  'order.placed': newOrder,
  'order.updated': async (client) =>
    await client.updateOrder((await newOrder(client)).id!, { shipDate: new Date().toISOString() }),
  'order.completed': async (client) => await client.updateOrder((await newOrder(client)).id!, { complete: true }),
  'order.cancelled': async (client) => { await client.cancelOrder((await newOrder(client)).id!) },
  'message.created': async (client) => await client.createMessage({ message: 'Hello' }),
  'fault.hit': async (client) => {
    await client.createFault({ operation: 'listPets', effect: { type: 'delay', ms: 1 } })
    await client.listPets()
  },
  'clock.advanced': async (client) => await client.advanceClock({ seconds: 1 }),
  // The store stays as it is.
  'store.replaced': async (client) => {
    const { id } = await client.createSnapshot({ label: 'petstore trigger' })
    await client.restoreSnapshot(id)
    await client.deleteSnapshot(id)
  }
}

export function addTrigger (program: Command): void {
  const types = Object.keys(TRIGGERS)
  addServiceOptions(program.command('trigger')
    .description('make an event happen, with sample records, and print the events that were caused')
    .argument('<type>', `type of the event: ${types.join(', ')}`, (type: string) => {
      if (types.includes(type)) return type
      throw new InvalidArgumentError('--help lists the types that a command can cause.')
    }))
    .addHelpText('after', '\nThe last three need a service with LAB=true. The other types of messages follow from ' +
      'message.created, when webhooks have responded.')
    .action(async (type: string, options: ServiceOptions) => {
      await withService(options, process.env, async (client) => {
        const before = await newestEvent(client)
        await TRIGGERS[type]!(client)
        for await (const event of client.listEvents({ after: before, limit: 100 })) {
          console.log(printable(`${event.id} ${event.type}`))
        }
      })
    })
}

async function newCategory (client: Client): Promise<Category> {
  return await client.createCategory({ name: 'Rabbits' })
}

async function newPet (client: Client): Promise<Pet> {
  const { id: categoryId } = await newCategory(client)
  return await client.createPet({ name: 'Rex', categoryId })
}

async function stockedPet (client: Client): Promise<Pet> {
  const pet = await newPet(client)
  await client.updateInventory(pet.id, { quantity: 10 })
  return pet
}

async function newOrder (client: Client): Promise<Order> {
  const { id: petId } = await stockedPet(client)
  return await client.placeOrder({ petId, quantity: 1 })
}
