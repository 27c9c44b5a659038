/** The viewer, as docs/viewer.js defines it. @type {{ createApiReference: (place: string, configuration: object) => void }} */
const viewer = Reflect.get(globalThis, 'Scalar')

/** Where the service is: this file lies one folder below, whatever a proxy has put before it. */
const SERVICE = new URL('../', import.meta.url)

const answer = await fetch(new URL('openapi.json', SERVICE))
const content = withOwnAddress(await answer.text())

/** @typedef {{ operationId: string, 'x-hideTryItPanel'?: boolean, 'x-sunset'?: string, 'x-badges'?: object[] }} Operation */
const operations = Object.values(content.paths).flatMap((methods) => /** @type {Operation[]} */ (Object.values(/** @type {object} */ (methods))))
const untested = operations.filter((operation) => operation['x-hideTryItPanel'] === true)
for (const operation of operations) {
  const date = operation['x-sunset']
  if (date !== undefined) operation['x-badges'] = [...operation['x-badges'] ?? [], { name: `ends ${date}` }]
}

// What the viewer has no setting for, styles do.
viewer.createApiReference('#app', {
  content,
  // The one that is sure to be reached from here, and that the page's policy allows.
  servers: [{ url: SERVICE.href.replace(/\/$/, ''), description: 'This service' }],
  authentication: {
    preferredSecurityScheme: 'bearerAuth',
    securitySchemes: { bearerAuth: { token: sessionStorage.getItem(`petstore key ${SERVICE.pathname}`) ?? '' } }
  },
  generateOperationSlug: (/** @type {{ method: string, path: string }} */ { method, path }) => content.paths[path][method.toLowerCase()].operationId,
  customCss: [
    'a[href*="scalar.com"] { display: none }',
    // Beside a request stands a list of all others, those that are not to be tried included.
    '.scalar-client .scalar-sidebar-toggle, .scalar-client .scalar-sidebar-toggle + div { display: none !important }',
    ...untested.map(({ operationId }) => `[id$="/${operationId}"] .show-api-client-button { display: none }`)
  ].join('\n'),
  // The document brings its own samples.
  hiddenClients: true,
  agent: { disabled: true },
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: 'preserve'
})

/** Without a public address the document names the machine's own; its reader may have come by another. */
function withOwnAddress (/** @type {string} */ text) {
  const document = JSON.parse(text)
  if (!document.servers[0].url.startsWith('/')) return document
  return JSON.parse(text.replace(/http:\/\/127\.0\.0\.1:\d+/g, SERVICE.origin))
}
