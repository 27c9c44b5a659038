// A client as many are written, with three bugs.

export function connect ({ url, apiKey }) {
  const call = async (method, path, body) => {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(url + path, {
          method,
          body: JSON.stringify(body),
          headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
          signal: AbortSignal.timeout(500)
        })
        if (response.ok) return await response.json()
        throw new Error(`HTTP ${response.status}`)
      } catch (error) {
        if (error.name === 'TimeoutError' || attempt === 3) throw error
      }
    }
  }
  return { placeOrder: async (petId) => await call('POST', '/store/orders', { petId }) }
}

/** Counts the orders that webhooks report. */
export function createReceiver () {
  let orders = 0
  return {
    receive: (_id, event) => { if (event.type === 'order.placed') orders++ },
    count: () => orders
  }
}
