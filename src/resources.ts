import { accounts } from './accounts/resource.ts'
import { categories } from './categories/resource.ts'
import type { Config } from './config.ts'
import type { ChangeLog, EventLog } from './database/group-commit/command.ts'
import type { Table } from './database/table.ts'
import { webhookSubscribers } from './deliveries/enqueue.ts'
import { events } from './events/resource.ts'
import { idempotencyRecords } from './generated/tables.ts'
import { inventory } from './inventory/resource.ts'
import { journal } from './journal/resource.ts'
import { lab } from './lab/resource.ts'
import { limits } from './limits/resource.ts'
import { messages } from './messages/resource.ts'
import { orders } from './orders/resource.ts'
import { pets } from './pets/resource.ts'
import type { Resource } from './resource.ts'
import { webhooks } from './webhooks/resource.ts'

/**
 * Returns all resources: the only list of them. Its order is the order in which rows are locked, parents before
 * children, and webhooks before the messages that they receive; the order of tags and paths in the document follows
 * from the tags' positions.
 */
export function createResources (config: Config): Resource[] {
  const store = [accounts, categories, pets(config), inventory, orders]
  const others = [messages, lab(config), journal(config), limits(config)]
  const feed = events(config, [...store, ...others], webhookSubscribers)
  return [...store, webhooks(config, feed.types), ...others, feed]
}

/** Returns what group commits need to know of the resources. */
export function commitOptions (
  resources: Resource[]
): { tables: Table[], eventLog: EventLog, changeLog: ChangeLog | undefined } {
  return {
    // Group commits write the records of idempotency keys by themselves. Those of a deleted account are erased as well.
    tables: [...resources.flatMap(({ tables }) => tables), idempotencyRecords],
    eventLog: resources.find(({ eventLog }) => eventLog !== undefined)!.eventLog!,
    changeLog: resources.find(({ changeLog }) => changeLog !== undefined)?.changeLog
  }
}
