// The same client on top of petstore-lab/client, which sends an Idempotency-Key and waits long enough.
import { createClient } from 'petstore-lab/client'

export function connect ({ url, apiKey }) {
  const store = createClient({ url, apiKey })
  return { placeOrder: async (petId) => await store.placeOrder({ petId }) }
}

/** Counts the orders that webhooks report, each once: a delivery can come twice, with the same id. */
export function createReceiver () {
  const seen = new Set()
  return {
    receive: (id, event) => { if (event.type === 'order.placed') seen.add(id) },
    count: () => seen.size
  }
}
