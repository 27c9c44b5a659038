import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifyInstance } from 'fastify'
import type { Answer as DocumentedAnswer, Document, Header, Operation, Schema } from '../../src/openapi/document.ts'
import { readConfig, type Config } from '../../src/config.ts'
import { exampleOfError } from '../../src/openapi/error-responses.ts'
import { allErrors } from '../../src/openapi/plugin.ts'
import { createResources } from '../../src/resources.ts'
import type { Answer } from './app.ts'
import { expandComponents } from './expand-components.ts'
import { recordDocumented, recordMet } from './met-errors.ts'

/** The OpenAPI document as a judge of answers. */
export interface Contract {
  /** What an answer has that the document does not allow, or lacks that it promises. */
  problemOf: (method: string, path: string, answer: Answer) => string | undefined
}

const contractsBySettings = new Map<string, Contract>()

/** Settings that leave no trace in the document. To build it takes as long as to start the service. */
const UNDOCUMENTED_SETTINGS = [
  'DATABASE_URL', 'DATABASE_POOL', 'DELIVERY', 'WEBHOOKS_ALLOW_PRIVATE', 'REQUEST_TIMEOUT_MS', 'SHUTDOWN_GRACE_MS',
  'CORS_ORIGINS', 'TRUST_PROXY', 'BODY_LIMIT', 'SIGNUP', 'HOST', 'METRICS_PORT', 'QUEUE_LIMIT', 'SLOW_READER_MS',
  'STREAMS_PER_ACCOUNT'
]

/** Returns the contract of an app. Reads its document only for the first app with the same settings. */
export function contractOf (app: FastifyInstance, config: Config): Contract {
  const settings = JSON.stringify(Object.entries(config).filter(([name]) => !UNDOCUMENTED_SETTINGS.includes(name)))
  return {
    problemOf (method, path, answer) {
      let contract = contractsBySettings.get(settings)
      if (contract === undefined) {
        contract = contractOfDocument(app.swagger() as unknown as Document, app.basePath)
        contractsBySettings.set(settings, contract)
      }
      return contract.problemOf(method, path, answer)
    }
  }
}

/** Returns every code that the service answers with, and its status. */
export function errorCodes (): Array<{ code: string, status: number }> {
  return allErrors(createResources(readConfig({}))).map((CodedError) => exampleOfError(CodedError))
}

const known = new Map<string, Contract>()

export function contractOfDocument (document: Document, basePath = ''): Contract {
  const text = basePath + JSON.stringify(document)
  let contract = known.get(text)
  if (contract === undefined) {
    contract = createContract(document, basePath)
    known.set(text, contract)
  }
  return contract
}

/** What answers without being in the document; relative to the base path, but for the three that stay at the root. */
const SERVICE = new RegExp(`^/(?:${[
  '', 'livez', 'readyz', 'openapi(?:-3\\.[12])?\\.(?:json|yaml)', '(?:arazzo|asyncapi)\\.json', 'docs(?:/.*)?',
  '\\.well-known/api-catalog'
].join('|')})$`)
const JSON_TYPE = 'application/json; charset=utf-8'

/** Fields that mean something to a client: an answer carries them where the document says so, and nowhere else. */
const MEANINGFUL = [
  'etag',
  'link',
  'location',
  'deprecation',
  'sunset',
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'idempotency-replayed',
  'event-id',
  'www-authenticate',
  'accept-patch'
]

function createContract (served: Document, basePath: string): Contract {
  const document = expandComponents(served)
  recordDocumented(document, errorCodes())
  const codes = new Set(errorCodes().map(({ code, status }) => `${code} ${status}`))
  const validatorOf = validators(document)
  const isError = validatorOf({ $ref: '#/components/schemas/Error' })
  const paths = Object.entries(document.paths).map(([template, methods]) => ({
    // What a template leaves open is one segment, in whatever it is percent-encoded.
    pattern: new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`),
    methods
  // A path without a parameter precedes one that matches it as well.
  })).sort((a, b) => Number(a.pattern.source.includes('[^/]+')) - Number(b.pattern.source.includes('[^/]+')))

  function problemOf (method: string, target: string, answer: Answer): string | undefined {
    const { status, headers, text } = answer
    if (!/^[A-Za-z0-9._~:-]{1,128}$/.test(String(headers['request-id'] ?? ''))) return 'it has no Request-Id'
    const bodiless = method === 'HEAD' || status === 204 || status === 304
    if (bodiless && text !== '') return `a ${status} to ${method} has no body, but this has: ${text}`
    if (status >= 400 && headers['cache-control'] !== 'no-store') { return `an error is not to be stored, but Cache-Control is ${headers['cache-control']}` }

    const path = pathOf(target)
    const below = path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : undefined
    const methods = below === undefined ? undefined : paths.find(({ pattern }) => pattern.test(below))?.methods
    const operation = methods?.[method === 'HEAD' ? 'get' : method.toLowerCase()]
    if (operation !== undefined) {
      return problemOfOperation(operation, answer, bodiless) ?? met(operation.operationId, answer)
    }
    if (status >= 400) {
      return problemOfError(answer, bodiless, undefined) ??
        (status === 405 ? problemOfAllow(answer, methods) : undefined) ??
        met(undefined, answer)
    }
    if (method === 'OPTIONS') return status === 204 ? problemOfAllow(answer, methods) : `OPTIONS is answered ${status}`
    if (methods !== undefined) return `${method} is not documented, but answered ${status}`
    if (!SERVICE.test(path) && !SERVICE.test(below ?? (path === basePath ? '/' : ''))) { return `nothing is documented at this address, but it answers ${status}` }
    return undefined
  }

  function met (operationId: string | undefined, { status, body }: Answer): undefined {
    if (status >= 400 && body !== undefined) recordMet(operationId, status, body.code)
  }

  function problemOfOperation (operation: Operation, answer: Answer, bodiless: boolean): string | undefined {
    const { status, headers, body } = answer
    const documented = operation.responses[status]
    if (documented === undefined) { return `${operation.operationId} does not document ${status}${body?.code === undefined ? '' : ` (${body.code})`}` }
    return problemOfHeaders(documented, answer) ??
      (status >= 400 ? problemOfError(answer, bodiless, documented) : problemOfCaching(answer)) ??
      problemOfBody(operation.operationId, documented, answer, bodiless, headers['content-type'])
  }

  function problemOfHeaders (documented: DocumentedAnswer, { status, headers }: Answer): string | undefined {
    const promised = new Set<string>()
    for (const [name, reference] of Object.entries(documented.headers ?? {})) {
      const header =
        '$ref' in reference ? document.components.headers[reference.$ref.split('/').at(-1)!] : (reference as Header)
      if (header === undefined) return `the document has no header ${name}`
      promised.add(name.toLowerCase())
      const value = headers[name.toLowerCase()]
      if (value === undefined && header.required) return `a ${status} promises the header ${name}`
      if (value !== undefined && header.schema.type === 'integer' && !/^\d+$/.test(String(value))) { return `the header ${name} is no integer: ${String(value)}` }
    }
    // Limits of the lab, which are of one account, are described under its tag.
    const ofLimits = document.paths['/lab/limits'] !== undefined ? ['ratelimit', 'ratelimit-policy'] : []
    const surplus = MEANINGFUL.find((name) =>
      headers[name] !== undefined && !promised.has(name) && !ofLimits.includes(name))
    return surplus === undefined
      ? undefined
      : `a ${status} does not document the header ${surplus}: ${String(headers[surplus])}`
  }

  function problemOfBody (
    id: string,
    { content }: DocumentedAnswer,
    answer: Answer,
    bodiless: boolean,
    type: string | undefined
  ): string | undefined {
    const { status, text, body } = answer
    if (content === undefined) { return text === '' ? undefined : `a ${status} of ${id} documents no body, but has: ${text}` }
    const [name = ''] = (type ?? '').split(';')
    const media = content[name]
    if (media === undefined) return `a ${status} of ${id} does not document the content type ${type}`
    if (name !== 'application/json') return undefined
    if (type !== JSON_TYPE) return `the content type is ${type}`
    if (bodiless) return undefined
    if (body === undefined) return `the body is no JSON: ${text}`
    const validate = validatorOf(media.schema ?? {})
    return validate(body) ? undefined : `the body ${explain(validate)}: ${text}`
  }

  /** The Error shape, with a code of the closed list, and one that is documented for the operation. */
  function problemOfError (
    { status, headers, text, body }: Answer,
    bodiless: boolean,
    documented: DocumentedAnswer | undefined
  ): string | undefined {
    if (headers['content-type'] !== JSON_TYPE) return `the error's content type is ${headers['content-type']}`
    if (bodiless) return undefined
    if (!isError(body)) return `the error ${explain(isError)}: ${text}`
    if (body.status !== status) return `the error says ${body.status}, but the status is ${status}`
    if (!codes.has(`${body.code} ${status}`)) return `${body.code} is no code of a ${status}`
    const examples = documented?.content?.['application/json']?.examples
    if (documented !== undefined && examples?.[body.code] === undefined) { return `the operation does not document the code ${body.code}` }
    return undefined
  }

  return { problemOf }
}

/** An address as the router reads it: percent-escapes are undone, but for those of reserved characters. */
function pathOf (target: string): string {
  // The absolute form of RFC 9112 section 3.2.2 names the host, too.
  const [path = ''] = target.replace(/^https?:\/\/[^/?]*/i, '').split('?')
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/** `Allow` is the documented methods, HEAD where there is GET, and OPTIONS. */
function problemOfAllow (
  { headers: { allow } }: Answer,
  methods: Record<string, Operation> | undefined
): string | undefined {
  if (allow === undefined) return 'there is no Allow header'
  if (methods === undefined) return undefined
  const expected = [
    'OPTIONS',
    ...Object.keys(methods).flatMap((name) => (name === 'get' ? ['GET', 'HEAD'] : [name.toUpperCase()]))
  ]
  const given = allow.split(', ').sort().join(', ')
  return given === expected.sort().join(', ')
    ? undefined
    : `Allow is ${given}, but ${expected.join(', ')} is documented`
}

/** Secrets are stored nowhere; everything else may be, if it is asked for again each time. */
function problemOfCaching ({ headers, body }: Answer): string | undefined {
  const secret = body?.apiKey !== undefined || body?.secret !== undefined
  const expected = secret ? 'no-store' : 'private, no-cache'
  return headers['cache-control'] === expected
    ? undefined
    : `Cache-Control is ${headers['cache-control']}, not ${expected}`
}

type Judge = ValidateFunction<any>

/** Compiles the schemas of answers, each once. */
function validators (document: Document): (schema: Schema) => Judge {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int64: true, uri: true, 'date-time': UTC } })
  ajv.addSchema({ $id: 'document', components: { schemas: closed(document.components.schemas) } })
  const compiled = new Map<string, Judge>()
  return (schema) => {
    const text = JSON.stringify(schema)
    let validate = compiled.get(text)
    if (validate === undefined) {
      validate = ajv.compile(JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/', '"document#/')))
      compiled.set(text, validate)
    }
    return validate
  }
}

/** Instants are answered in UTC, with milliseconds. */
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The document leaves answers open, so that they may grow; what it does not name yet is a defect today. */
function closed<T> (schema: T): T {
  if (schema === null || typeof schema !== 'object') return schema
  if (Array.isArray(schema)) return schema.map(closed) as T
  const copy = Object.fromEntries(
    Object.entries(schema)
      .filter(([name]) => name !== 'example')
      .map(([name, inner]) => [name, closed(inner)])
  )
  const isObject =
    copy['type'] === 'object' && copy['properties'] !== undefined && copy['additionalProperties'] !== false
  return (isObject ? { ...copy, additionalProperties: false } : copy) as T
}

function explain ({ errors }: Judge): string {
  return (errors ?? [])
    .map(
      ({ instancePath, message, params }) =>
        `${instancePath === '' ? 'as a whole' : instancePath} ${message}${'additionalProperty' in params ? ` (${params['additionalProperty']})` : ''}`
    )
    .join('; ')
}
