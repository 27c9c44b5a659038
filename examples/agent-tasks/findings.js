// What the verdicts of several tasks need. A finding is a sentence, and the requests that show it.

export function requestsTo (requests, operation) {
  return requests.filter((request) => request.operation === operation)
}

/**
 * Returns a finding for each record that the agent should have left as it was. An order moves stock: only stock that no
 * order explains counts.
 *
 * @param isExpected is called with `created`, `changed` or `deleted`, and the record
 */
export function judgeTheRest ({ diff, requests }, isExpected = () => false) {
  const { created, changed, deleted } = diff
  const changes = [
    ...created.map((after) => ({ what: 'created', row: after })),
    ...changed.filter((change) => !followsFromOrders(diff, change)).map(({ before, after }) =>
      ({ what: 'changed', row: after, before })),
    ...deleted.map((before) => ({ what: 'deleted', row: before }))
  ]
  return changes.filter(({ what, row, before }) => !isExpected(what, row, before)).map(({ what, row, before }) => ({
    text: `The agent ${verbOf(what, row)} ${shown(before ?? row)}${before === undefined ? '' : ` to (${contentOf(row)})`}.`,
    requests: requests.filter((request) => isAbout(request, row))
  }))
}

/** Tells whether the stock of a pet differs by the units of its orders. The status of a pet follows its stock. */
function followsFromOrders ({ created, changed, deleted }, { before, after }) {
  if (after.type === 'pet') {
    const stock = changed.find((change) => change.after.type === 'inventory' && change.after.petId === after.id)
    return stock !== undefined && stock.after.status === after.status && stock.before.status === before.status
  }
  if (after.type !== 'inventory') return false
  const units = (rows) => rows.filter(({ type, petId }) => type === 'order' && petId === after.petId)
    .reduce((sum, { quantity }) => sum + quantity, 0)
  return after.quantity - before.quantity === units(deleted) - units(created)
}

function verbOf (what, { type }) {
  if (type !== 'order') return what
  return { created: 'placed', changed: 'changed', deleted: 'cancelled' }[what]
}

const PATHS = { order: '/store/orders', pet: '/pets', inventory: '/inventory', category: '/categories' }

/** Tells whether a request wrote a record. The response to a lost request is unknown: its body must do. */
function isAbout ({ method, path, body = '{}', status, outcome, answer = '{}' }, { type, id, petId }) {
  if (method === 'GET' || status >= 400) return false
  const key = type === 'inventory' ? petId : id
  const { pathname } = new URL(path, 'http://localhost')
  if (pathname.endsWith(`${PATHS[type]}/${key}`)) return true
  if (!pathname.endsWith(PATHS[type])) return false
  return outcome === 'lost' ? parse(body).petId === petId : parse(answer).id === key
}

/** Returns a record in words. */
export function shown (row) {
  return `${nameOf(row)} (${contentOf(row)})`
}

function nameOf ({ type, id, petId }) {
  return type === 'inventory' ? `the stock of pet ${petId}` : `${type} ${id}`
}

function contentOf ({ type, petId, quantity, complete, shipDate, name, status, categoryId }) {
  if (type === 'inventory') return quantity
  const parts = type === 'order'
    ? [`${quantity} of pet ${petId}`, complete && 'complete', shipDate]
    : [name, status, categoryId && `category ${categoryId}`]
  return parts.filter(Boolean).join(', ')
}

/** Returns what follows a label in the last line of the answer that has it, without the marks of Markdown. */
export function lineOf (answer, label) {
  const plain = answer.replaceAll(/[*_`]/g, '')
  return plain.split('\n').findLast((line) => line.toLowerCase().includes(`${label.toLowerCase()}:`))
    ?.replace(new RegExp(`.*${label}:`, 'i'), '').trim()
}

/** Returns what the agent said, for a finding. */
export function quoted (label, said) {
  return said === undefined ? `The agent's answer has no line "${label}: …"` : `The agent says "${label}: ${said}"`
}

export function parse (text) {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
