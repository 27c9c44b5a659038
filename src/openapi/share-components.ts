import type { Answer, Document, Example, Media, Parameter, Reference, Schema } from './document.ts'

/** Parts that occur repeatedly, by their names in `components`. */
type Shared<Part> = Record<string, Part>

/** A document with references in place of its repeated parameters, responses and examples. */
export interface SharedDocument extends Omit<Document, 'paths' | 'components'> {
  components: Document['components'] & {
    parameters: Shared<Parameter>
    responses: Shared<Answer>
    examples: Shared<unknown>
  }
  paths: Record<string, Record<string, object>>
}

/** Names of responses that most operations have. They are short, because the document repeats them. */
const STATUS_NAMES: Record<string, string> = {
  204: 'NoContent',
  304: 'NotModified',
  400: 'BadRequest',
  408: 'RequestTimeout',
  429: 'TooManyRequests',
  500: 'InternalError',
  502: 'BadGateway',
  503: 'Unavailable',
  504: 'GatewayTimeout'
}

/**
 * Moves parameters and responses that occur more than once, and the examples of errors, into components. It makes the
 * document a third as long, and generators write a type once that they would otherwise write for each operation.
 */
export function shareComponents (document: Document): SharedDocument {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const examples: Shared<unknown> = {}
  for (const { responses } of operations) {
    for (const [status, answer] of Object.entries(responses)) {
      if (Number(status) >= 400) shareExamples(answer.content!['application/json']!, examples)
    }
  }
  const parameters = createPool<Parameter>('parameters', operations.flatMap(({ parameters = [] }) => parameters))
  const responses = createPool<Answer>('responses', operations.flatMap(({ responses }) => Object.values(responses)))
  const paths = mapValues(document.paths, (methods) => mapValues(methods, (operation) => ({
    ...operation,
    ...operation.parameters === undefined
      ? {}
      : { parameters: operation.parameters.map((parameter) => parameters.replace(parameter, nameOfParameter)) },
    responses: mapValues(operation.responses, (answer, status) =>
      isShared(status) ? responses.replace(answer, (answer) => nameOfResponse(status, answer)) : answer)
  })))
  const components = {
    ...document.components,
    parameters: parameters.named(),
    ...withExamplesOfOne(responses.named(), examples, JSON.stringify(paths))
  }
  return { ...document, components: { ...components, schemas: usedSchemas(components, paths) }, paths }
}

/** Moves the examples that one shared response alone refers to into that response. */
function withExamplesOfOne (
  responses: Shared<Answer>, examples: Shared<unknown>, paths: string
): { responses: Shared<Answer>, examples: Shared<unknown> } {
  const text = JSON.stringify(responses)
  const isOfOne = (name: string): boolean => {
    const reference = `"#/components/examples/${name}"`
    return !paths.includes(reference) && text.indexOf(reference) === text.lastIndexOf(reference)
  }
  const [moved, kept] = [true, false].map((isMoved) =>
    Object.fromEntries(Object.entries(examples).filter(([name]) => isOfOne(name) === isMoved)))
  const withExamples = text.replace(/\{"\$ref":"#\/components\/examples\/(\w+)"\}/g, (reference, name: string) =>
    name in moved! ? JSON.stringify(moved![name]) : reference)
  return { responses: JSON.parse(withExamples) as Shared<Answer>, examples: kept! }
}

/** Returns the schemas that operations refer to. Without the lab, its requests are in no operation. */
function usedSchemas ({ schemas, ...others }: SharedDocument['components'], paths: object): Shared<Schema> {
  const used = new Set<string>()
  const addSchemasOf = (part: object): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue
      used.add(name)
      addSchemasOf(schemas[name] ?? {})
    }
  }
  addSchemasOf([paths, others])
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)))
}

interface Pool<Part> {
  /** Returns a reference to the part if it occurs more than once, else the part itself. */
  replace: (part: Part, nameOf: (part: Part) => string) => Part | Reference
  /** Returns the parts that were replaced. */
  named: () => Shared<Part>
}

function createPool<Part extends object> (kind: 'parameters' | 'responses', parts: Part[]): Pool<Part> {
  const counts = new Map<string, number>()
  for (const part of parts) counts.set(JSON.stringify(part), (counts.get(JSON.stringify(part)) ?? 0) + 1)
  const named = new Map<string, Part>()
  return {
    replace (part, nameOf) {
      if (counts.get(JSON.stringify(part)) === 1) return part
      const name = nameOf(part)
      let unique = name
      // Variants, such as a parameter with another example, get a number.
      for (let i = 2; named.has(unique) && !isSame(named.get(unique), part); i++) unique = `${name}${i}`
      named.set(unique, part)
      return { $ref: `#/components/${kind}/${unique}` }
    },
    named: () => Object.fromEntries(named)
  }
}

function isSame (a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Answers with a body of their own stay with their operation. */
function isShared (status: string): boolean {
  return status === '204' || status === '304' || Number(status) >= 400
}

function shareExamples (media: Media, components: Shared<unknown>): void {
  media.examples = mapValues(media.examples ?? {}, (example, code) => {
    // An error that has several statuses has an example for each.
    const known = components[code] as Example | undefined
    const { status } = (example as Example).value as { status: number }
    const name = known === undefined || isSame(known, example) ? code : `${code}_${status}`
    components[name] = example
    return { $ref: `#/components/examples/${name}` }
  })
}

function nameOfParameter ({ name, in: place, description = '' }: Parameter): string {
  // Two header fields have this name: for reads and for writes.
  const prefix = place === 'header' && description.startsWith('Write only if the record has none') ? 'Write' : ''
  return prefix + pascalCase(name)
}

/** Names a response after its status if most operations have it, and an error of few operations after its codes. */
function nameOfResponse (status: string, { content, headers = {} }: Answer): string {
  const codes = Object.keys(content?.['application/json']?.examples ?? {})
  const name = STATUS_NAMES[status]
  if (status === '304' && 'Link' in headers) return `${name}List`
  if (status === '400' && 'Accept-Patch' in headers) return `${name}Patch`
  if (status === '400' && codes.includes('invalid_json')) return `${name}Body`
  if (name !== undefined) return name
  // Most writes have these codes.
  const own = codes.filter((code) => !['idempotency_key_in_use', 'storage_limit_reached'].includes(code))
  return (own.length === 0 ? codes : own).map(pascalCase).join('Or')
}

/** Converts `pet_not_found`, `petId` and `If-Match` to `PetNotFound`, `PetId` and `IfMatch`. */
function pascalCase (name: string): string {
  return name.split(/[-_]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function mapValues<Value, Result> (
  object: Record<string, Value>, change: (value: Value, name: string) => Result
): Record<string, Result> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]))
}
