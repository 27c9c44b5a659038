import type { Answer, Document, Reference } from '../../src/openapi/document.ts'

/**
 * Returns a served document with its parameters, responses and examples written out where they are used, as the tests
 * read them. References to schemas and header fields stay.
 */
export function expandComponents<D extends object> (served: D): D & Document {
  const document = served as unknown as Document & { components: Record<string, Record<string, unknown>> }
  const expand = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(expand)
    if (part === null || typeof part !== 'object') return part
    const { $ref } = part as Partial<Reference>
    const [, , kind = '', name = ''] = $ref?.split('/') ?? []
    if (['parameters', 'responses', 'examples'].includes(kind)) return expand(document.components[kind]![name])
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, expand(inner)]))
  }
  return { ...document, paths: expand(document.paths) } as unknown as D & Document
}

/** Returns the error codes of a response, which its examples show. */
export function exampleCodes ({ content }: Answer): string[] {
  return Object.keys(content?.['application/json']?.examples ?? {})
}
