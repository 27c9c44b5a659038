import type { Resource, Tag as ResourceTag } from '../resource.ts'

/** The navigation groups. Groups with a description are also tags, which have no operations of their own. */
const GROUPS: Array<{ name: ResourceTag['group'], description?: string }> = [
  { name: 'Pets', description: 'Pets and their categories.' },
  { name: 'Store', description: 'Orders and stock.' },
  { name: 'Platform' }
]

export interface Tag { name: string, description: string, 'x-displayName'?: string, 'x-parent'?: string }
export interface TagGroup { name: string, tags: string[] }

/** Returns the resources' tags in their order in the document. */
export function tagsInOrder (resources: Resource[]): ResourceTag[] {
  return resources.flatMap(({ tag }) => tag ?? []).sort((a, b) => a.position - b.position)
}

/** Returns the tags and their grouping. */
export function navigation (resources: Resource[]): { tags: Tag[], 'x-tagGroups': TagGroup[] } {
  const leaves = tagsInOrder(resources)
  const tags: Tag[] = []
  const groups: TagGroup[] = []
  for (const { name: group, description } of GROUPS) {
    const own = leaves.filter((leaf) => leaf.group === group)
    if (description !== undefined) tags.push({ name: group, description })
    for (const { name, title, description: text } of own) {
      tags.push({
        name,
        description: text,
        'x-displayName': title ?? name.charAt(0).toUpperCase() + name.slice(1),
        ...description === undefined ? {} : { 'x-parent': group }
      })
    }
    groups.push({ name: group, tags: own.map(({ name }) => name) })
  }
  return { tags, 'x-tagGroups': groups }
}

/** Returns the introduction of the document, in Markdown. Generators copy it into each file, so it is short. */
export function introduction (server: string, hasLab: boolean): string {
  return `A pet store API: pets in categories, their stock, orders and messages. \
Each account is a store of its own and cannot see any other.

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

- Lists have pages: follow \`rel="next"\` of the \`Link\` header.
- A patch is a JSON merge patch (RFC 7396).
- A write with an \`Idempotency-Key\` takes effect once, however often you send it within 24 hours.
- Send an \`ETag\` in \`If-None-Match\` to read only what has changed, and in \`If-Match\` to write only over what you \
have read.
- Branch on the \`code\` of an error. Quote the \`Request-Id\` when you report a problem.
- \`GET /events\` lists the changes of your store or streams them. Webhooks receive them.
${hasLab ? '- The lab injects faults, moves the clock and restores snapshots of your store, to test your client.\n' : ''}\
- \`petstore-lab/client\` in the npm package of this service is a client for JavaScript and TypeScript.`
}
