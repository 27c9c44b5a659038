import build, { type Schema } from 'fast-json-stringify'

type Serialize = (data: unknown) => string
type SerializerCompiler = (part: { schema?: unknown }) => Serialize

/**
 * Builds a Fastify serializer compiler that uses Fastify's own serializers. It compiles a schema for its first
 * response, once for all routes with that schema: compiling all schemas would take a tenth of the start-up time.
 *
 * @param components the named schemas, by their `$id`
 */
export function buildSerializerCompiler (components: Record<string, unknown>): SerializerCompiler {
  const serializers = new Map<string, Serialize>()
  let inOrder: Record<string, Schema> | undefined
  const compile = (schema: unknown): Serialize => {
    inOrder ??= withoutRequired(components) as Record<string, Schema>
    return build(withoutRequired(schema) as Schema, { schema: inOrder })
  }
  return ({ schema }) => {
    const text = JSON.stringify(schema)
    const serialize = serializers.get(text) ?? onFirstUse(() => compile(schema))
    serializers.set(text, serialize)
    return serialize
  }
}

/**
 * Returns a schema in which no member is required. The serializer would write required members first, and responses to
 * writes would have another order than reads, whose text the database makes.
 */
function withoutRequired (schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, (name, value: unknown) =>
    name === 'required' && Array.isArray(value) ? undefined : value))
}

function onFirstUse (compile: () => Serialize): Serialize {
  let compiled: Serialize | undefined
  return (data) => (compiled ??= compile())(data)
}
