import type { Resource, Tag as ResourceTag } from '../database/resource.ts'
import type { ErrorClass } from '../errors.ts'
import { exampleOfError } from './error-responses.ts'

/** The navigation groups. Groups with a description are also tags, which have no operations of their own. */
const GROUPS: Array<{ name: ResourceTag['group'], description?: string }> = [
  { name: 'Pets', description: 'The animals and their categories.' },
  { name: 'Store', description: 'Orders and stock.' },
  { name: 'Platform' }
]

export interface Tag { name: string, description: string, 'x-displayName'?: string, 'x-parent'?: string }
export interface TagGroup { name: string, tags: string[] }

/** Returns the resources' tags in their order in the document. */
export function tagsInOrder (resources: Resource[]): ResourceTag[] {
  return resources.map(({ tag }) => tag).sort((a, b) => a.position - b.position)
}

/** Returns the tags and their grouping. */
export function navigation (resources: Resource[]): { tags: Tag[], 'x-tagGroups': TagGroup[] } {
  const leaves = tagsInOrder(resources)
  const tags: Tag[] = []
  const groups: TagGroup[] = []
  for (const { name: group, description } of GROUPS) {
    const own = leaves.filter((leaf) => leaf.group === group)
    if (description !== undefined) tags.push({ name: group, description })
    for (const { name, description: text } of own) {
      tags.push({
        name,
        description: text,
        'x-displayName': name.charAt(0).toUpperCase() + name.slice(1),
        ...description === undefined ? {} : { 'x-parent': group }
      })
    }
    groups.push({ name: group, tags: own.map(({ name }) => name) })
  }
  return { tags, 'x-tagGroups': groups }
}

/** Returns the introduction of the document, in Markdown. */
export function introduction (server: string, errors: ErrorClass[]): string {
  return `A pet store API: pets in categories, their stock, orders and messages. \
Each account is a store of its own and cannot see any other.

## Quickstart

Open an account, take the \`apiKey\` from the response, and send a message:

\`\`\`sh
curl ${server}/accounts \\
  -H 'Content-Type: application/json' \\
  -d '{"name": "My store"}'

curl ${server}/messages \\
  -H 'Authorization: Bearer <API_KEY>' \\
  -H 'Content-Type: application/json' \\
  -d '{"message": "Hello"}'
\`\`\`

## Conventions

- **Requests** are JSON. The service rejects unknown fields and query parameters, and converts no types. \
A patch is a JSON merge patch (RFC 7396).
- **Ids** are 64-bit integers that are never reused. A record of another account is not found.
- **Lists** have pages of \`limit\` records. Follow \`rel="next"\` of the \`Link\` header until there is none. \
You get every record that exists during the whole walk exactly once, even while other clients write.
- **ETags**: send one in \`If-None-Match\` to read only what has changed, \
or in \`If-Match\` to write only over what you have read. \`HEAD\` works wherever \`GET\` does.
- **Repeating a write**: with an \`Idempotency-Key\` a request takes effect once, \
however often you send it within 24 hours. The service answers a repetition like the first request, \
with \`Idempotency-Replayed: true\`. Operations whose response contains a new secret accept no key.
- **Request-Id** is on every response. Quote it when you report a problem.

## Errors

Every error is \`{code, message, status}\`. The message says what is wrong and what would be right; branch on the code:

| Status | Codes |
|---|---|
${codeTable(errors)}`
}

function codeTable (errors: ErrorClass[]): string {
  const codes = new Map<number, string[]>()
  for (const { code, status } of errors.map((CodedError) => exampleOfError(CodedError))) {
    codes.set(status, [...codes.get(status) ?? [], `\`${code}\``])
  }
  const rows = [...codes].sort(([a], [b]) => a - b)
  return rows.map(([status, names]) => `| ${status} | ${names.join(', ')} |`).join('\n')
}
