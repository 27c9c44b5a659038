/**
 * The viewer, which docs/viewer.js defines.
 *
 * @type {{ createApiReference: (place: string, configuration: object) => void }}
 */
const viewer = Reflect.get(globalThis, 'Scalar')

/** The address of the service: the folder above this file, also behind a proxy that adds a path prefix. */
const SERVICE = new URL('../', import.meta.url)

const [content, samples] = await Promise.all([read('openapi.json'), read('docs/samples.json')])

/**
 * @typedef {{
 *   operationId: string,
 *   'x-hideTryItPanel'?: boolean,
 *   'x-sunset'?: string,
 *   'x-badges'?: object[]
 *   'x-codeSamples'?: object[]
 * }} Operation
 */
const operations = Object.values(content.paths).flatMap((methods) =>
  /** @type {Operation[]} */ (Object.values(/** @type {object} */ (methods))))
const untested = operations.filter((operation) => operation['x-hideTryItPanel'] === true)
for (const operation of operations) {
  operation['x-codeSamples'] = samples[operation.operationId]
  const date = operation['x-sunset']
  if (date !== undefined) operation['x-badges'] = [...operation['x-badges'] ?? [], { name: `ends ${date}` }]
}

// Styles replace the settings that the viewer does not have.
viewer.createApiReference('#app', {
  content,
  // The page can always reach this server, and its content security policy allows it.
  servers: [{ url: SERVICE.href.replace(/\/$/, ''), description: 'This service' }],
  authentication: {
    preferredSecurityScheme: 'bearerAuth',
    securitySchemes: { bearerAuth: { token: sessionStorage.getItem(`petstore key ${SERVICE.pathname}`) ?? '' } }
  },
  generateOperationSlug: (/** @type {{ method: string, path: string }} */ { method, path }) =>
    content.paths[path][method.toLowerCase()].operationId,
  customCss: [
    'a[href*="scalar.com"] { display: none }',
    // The sidebar of a request would list all operations, including those with interactive testing disabled.
    '.scalar-client .scalar-sidebar-toggle, .scalar-client .scalar-sidebar-toggle + div { display: none !important }',
    ...untested.map(({ operationId }) => `[id$="/${operationId}"] .show-api-client-button { display: none }`)
  ].join('\n'),
  // The document contains its own samples.
  hiddenClients: true,
  agent: { disabled: true },
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: 'preserve'
})

/** Reads a document of the service, with the address of this page in place of the one that the service knows. */
async function read (/** @type {string} */ path) {
  const answer = await fetch(new URL(path, SERVICE))
  return JSON.parse((await answer.text()).replaceAll(`http://${SERVICE.host}/`, SERVICE.href))
}
