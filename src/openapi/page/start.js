/**
 * The viewer, which docs/viewer.js defines.
 *
 * @typedef {{ updateConfiguration: (configuration: object) => void }} Reference
 * @type {{ createApiReference: (place: string, configuration: object) => Reference }}
 */
const viewer = Reflect.get(globalThis, 'Scalar')

/** The address of the service: the folder above this file, also behind a proxy that adds a path prefix. */
const SERVICE = new URL('../', import.meta.url)

/** The versions of the document. A downloaded file is named after the slug. */
const VERSIONS = [
  { title: 'OpenAPI 3.0.3', slug: 'openapi-3-0', url: new URL('openapi.json', SERVICE).href },
  { title: 'OpenAPI 3.1', slug: 'openapi-3-1', url: new URL('openapi-3.1.json', SERVICE).href },
  { title: 'OpenAPI 3.2', slug: 'openapi-3-2', url: new URL('openapi-3.2.json', SERVICE).href }
]

/** Where the first page keeps the API key of this tab. */
const KEY_ITEM = `petstore key ${SERVICE.pathname}`

/**
 * @typedef {{ required?: boolean, example?: unknown, examples?: Record<string, object> }} Parameter
 *
 * @typedef {{
 *   operationId: string,
 *   parameters?: Parameter[],
 *   description?: string,
 *   'x-hideTryItPanel'?: boolean,
 *   'x-sunset'?: string,
 *   'x-badges'?: object[]
 *   'x-codeSamples'?: object[]
 * }} Operation
 */

let key = sessionStorage.getItem(KEY_ITEM) ?? ''
let keys = 0
const samples = read('docs/samples.json')
const styles = document.head.appendChild(document.createElement('style'))

const configuration = {
  sources: VERSIONS,
  // The viewer also sends its requests with this function.
  customFetch: async (/** @type {RequestInfo} */ input, /** @type {RequestInit=} */ init) =>
    typeof input === 'string' && versionAt(input) !== undefined
      ? Response.json(prepare(await read(input), await samples))
      : await fetch(input, init),
  // The page can always reach this server, and its content security policy allows it.
  servers: [{ url: SERVICE.href.replace(/\/$/, ''), description: 'This service' }],
  authentication: { preferredSecurityScheme: 'bearerAuth', securitySchemes: { bearerAuth: { token: key } } },
  generateOperationSlug: (/** @type {{ operationId: string }} */ { operationId }) => operationId,
  // Addresses of the time when the page showed one version.
  redirect: (/** @type {string} */ hash) => hash.replace(/^#(?!openapi-|$)/, `#${VERSIONS[0]?.slug}/`),
  // A file as the service sends it, without the samples and their key.
  documentDownloadType: 'direct',
  // The colours follow the system, as those of the first page do.
  forceDarkModeState: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
  // The document contains its own samples.
  hiddenClients: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: 'preserve'
}
// The viewer takes an element with content for a page that a server has rendered.
document.querySelector('#app')?.replaceChildren()
const reference = viewer.createApiReference('#app', configuration)

document.addEventListener('change', ({ target }) => {
  const isKey = target instanceof HTMLInputElement && target.closest('.scalar-reference-intro-auth') !== null
  if (isKey && target.value !== key) useKey(target.value)
})

// The viewer's link to the document would leave the page.
document.addEventListener('click', ({ target }) => {
  const link = target instanceof Element && target.closest('#app a')
  const version = link instanceof HTMLAnchorElement && versionAt(link.href)
  if (version) link.setAttribute('download', `${version.slug}.json`)
})

/** Shows another key in the samples, and keeps it for the first page. */
function useKey (/** @type {string} */ entered) {
  key = entered
  if (key === '') sessionStorage.removeItem(KEY_ITEM)
  else sessionStorage.setItem(KEY_ITEM, key)
  keys++
  // The viewer reads a document again when its address is another one.
  const sources = VERSIONS.map((version) => ({ ...version, url: `${version.url}#${keys}` }))
  reference.updateConfiguration({ ...configuration, sources })
}

/**
 * Adds to a document what this page shows and the document does not contain.
 *
 * @typedef {{ summary?: string, 'x-displayName'?: string }} Tag
 *
 * @typedef {{
 *   paths: Record<string, Record<string, Operation>>,
 *   tags: Tag[],
 *   components: { parameters?: Record<string, Parameter> }
 * }} Content
 *
 * @param {Content} content
 * @param {Record<string, Array<{ source: string }>>} samples
 */
function prepare (content, samples) {
  // The viewer does not read the summary, which OpenAPI 3.2 added.
  for (const tag of content.tags) if (tag.summary !== undefined) tag['x-displayName'] ??= tag.summary
  const operations = Object.values(content.paths).flatMap((methods) => Object.values(methods))
  const untested = operations.filter((operation) => operation['x-hideTryItPanel'] === true)
  for (const operation of untested) {
    operation.description = `${operation.description}\n\nInteractive testing is turned off for this operation.`
  }
  // A style, because the viewer has a setting for all operations only.
  styles.textContent = untested.map(({ operationId }) =>
    `[id$="/${operationId}"] .show-api-client-button { display: none }`).join('\n')
  for (const operation of operations) {
    const date = operation['x-sunset']
    if (date !== undefined) operation['x-badges'] = [...operation['x-badges'] ?? [], { name: `ends ${date}` }]
    operation['x-codeSamples'] = (samples[operation.operationId] ?? []).map(({ source, ...sample }) =>
      ({ ...sample, source: key === '' ? source : source.replace('<API_KEY>', () => key) }))
  }
  const parameters = [content.components, ...operations].flatMap(({ parameters }) => Object.values(parameters ?? {}))
  for (const parameter of parameters) {
    if (parameter.required === true || parameter.example === undefined) continue
    // The viewer would send each parameter that has an example, such as all filters of a list together.
    parameter.examples = { default: { value: parameter.example, 'x-disabled': true } }
    delete parameter.example
  }
  return content
}

/** Returns the version of the document at an address, also with the count that {@link useKey} adds. */
function versionAt (/** @type {string} */ address) {
  return VERSIONS.find(({ url }) => url === address.replace(/#.*/, ''))
}

/** Reads a document of the service, with the address of this page in place of the one that the service knows. */
async function read (/** @type {string} */ path) {
  const answer = await fetch(new URL(path, SERVICE))
  return JSON.parse((await answer.text()).replaceAll(`http://${SERVICE.host}/`, SERVICE.href))
}
