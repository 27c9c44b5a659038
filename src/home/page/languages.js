/**
 * A request that the page shows.
 *
 * @typedef {object} Shown
 * @property {string} operation the method of the client
 * @property {string} method
 * @property {string} path
 * @property {object} [body]
 * @property {string} [idempotencyKey]
 * @property {boolean} [isPublic] needs no key
 */

/** @param {Shown} request @returns {Array<[name: string, value: string]>} */
function headersOf ({ method, body, idempotencyKey, isPublic = false }) {
  return Object.entries({
    ...isPublic ? {} : { Authorization: 'Bearer <API_KEY>' },
    ...body === undefined ? {} : { 'Content-Type': 'application/json' },
    ...idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey },
    ...method === 'GET' ? { Accept: 'text/event-stream' } : {}
  })
}

/** @param {Shown} request @param {string} server */
export function inCurl (request, server) {
  const { method, path, body } = request
  return [
    `curl ${method === 'GET' ? '-N ' : ''}${server}${path}`,
    ...headersOf(request).map(([name, value]) => `-H '${name}: ${value}'`),
    // A shell takes all characters inside single quotes literally, but single quotes.
    ...body === undefined ? [] : [`-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]
  ].join(' \\\n  ')
}

/** @param {Shown} request @param {string} server */
export function inJavaScript ({ operation, method, body, idempotencyKey, isPublic = false }, server) {
  const options = isPublic ? `{ url: '${server}' }` : `{\n  url: '${server}',\n  apiKey: '<API_KEY>'\n}`
  const header = idempotencyKey === undefined ? '' : `, {\n  headers: { 'Idempotency-Key': '${idempotencyKey}' }\n}`
  const call = method === 'GET'
    ? `for await (const event of store.${operation}()) console.log(event)`
    : `console.log(await store.${operation}(${JSON.stringify(body)}${header}))`
  return `import { createClient } from 'petstore-lab/client'\n\nconst store = createClient(${options})\n${call}`
}

/** @param {Shown} request @param {string} server */
export function inPython (request, server) {
  const { method, path, body } = request
  const headers = headersOf(request).map(([name, value]) => `    '${name}': '${value}'`)
  return [
    'import urllib.request\n',
    `request = urllib.request.Request('${server}${path}', headers={`,
    `${headers.join(',\n')}`,
    // The escapes of JSON are escapes of Python, too.
    body === undefined ? '})' : `}, data=${JSON.stringify(JSON.stringify(body))}.encode())`,
    method === 'GET'
      ? "for line in urllib.request.urlopen(request):\n    print(line.decode(), end='')"
      : 'print(urllib.request.urlopen(request).read().decode())'
  ].join('\n')
}
