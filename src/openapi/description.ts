import { allCodes } from './error-responses.ts'

/** The tags that operations carry, under the navigation groups that hold no operations of their own. */
const GROUPS: Array<{ name: string, description?: string, tags: Record<string, string> }> = [
  {
    name: 'Pets',
    description: 'The animals and the groups they belong to.',
    tags: { animals: 'The animals of the store.', categories: 'The groups that animals belong to.' }
  },
  {
    name: 'Store',
    description: 'What is sold, and what is left.',
    tags: { orders: 'Units of a pet, taken out of its stock.', inventory: 'The stock of each pet.' }
  },
  {
    name: 'Platform',
    tags: {
      messages: 'Texts to deliver. The quickstart is here.',
      events: 'Everything that happened in the store, in order.',
      webhooks: 'Addresses that hear of what happens.',
      accounts: 'The account, which is the store, and its API keys.'
    }
  }
]

export interface Tag { name: string, description: string, 'x-displayName'?: string, 'x-parent'?: string }
export interface TagGroup { name: string, tags: string[] }

/** The tags and their grouping, without those that no operation carries. */
export function navigation (used: Set<string>): { tags: Tag[], 'x-tagGroups': TagGroup[] } {
  const tags: Tag[] = []
  const groups: TagGroup[] = []
  for (const { name, description, tags: leaves } of GROUPS) {
    const own = Object.entries(leaves).filter(([leaf]) => used.has(leaf))
    if (own.length === 0) continue
    if (description !== undefined) tags.push({ name, description })
    for (const [leaf, text] of own) {
      tags.push({
        name: leaf,
        description: text,
        'x-displayName': leaf.charAt(0).toUpperCase() + leaf.slice(1),
        ...description === undefined ? {} : { 'x-parent': name }
      })
    }
    groups.push({ name, tags: own.map(([leaf]) => leaf) })
  }
  return { tags, 'x-tagGroups': groups }
}

/** The first page of the document. */
export function introduction (server: string): string {
  return `A pet store over HTTP: pets in categories, their stock, orders, and messages. An account is a store of its own; nobody sees into another's.

## Quickstart

Open an account, take the \`apiKey\` of the answer, and send a message:

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

- **Requests** are JSON and are taken as they are: an unknown field or query parameter is an error, and nothing is converted. A patch is a JSON merge patch (RFC 7396).
- **Ids** are 64-bit integers that are never used again. What belongs to another account is not found.
- **Lists** come in pages of \`limit\` records. Follow \`rel="next"\` of the \`Link\` header until there is none: whatever was there all along is met exactly once, also while others write.
- **ETags**: send one back in \`If-None-Match\` to read only what changed, or in \`If-Match\` to write only over what you have read. \`HEAD\` works wherever \`GET\` does.
- **Repeating a write**: with an \`Idempotency-Key\` a request takes effect once, however often it is sent in 24 hours. A repetition is answered like the first, with \`Idempotency-Replayed: true\`. Operations whose answer holds a new secret take no key.
- **Request-Id** is on every answer. Quote it when you report a problem.

## Errors

Every error is \`{code, message, status}\`. The message says what is wrong and what would be right; branch on the code:

| Status | Codes |
|---|---|
${codeTable()}`
}

function codeTable (): string {
  const codes = new Map<number, string[]>()
  for (const { code, status } of allCodes()) codes.set(status, [...codes.get(status) ?? [], `\`${code}\``])
  return [...codes].map(([status, names]) => `| ${status} | ${names.join(', ')} |`).join('\n')
}
