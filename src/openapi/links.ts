import type { Answer, Document, Operation, Schema } from './document.ts'

/** Returns the operation that reads the new record of a collection's POST, if there is one. */
export function readOf ({ paths }: Document, path: string, readBy: string | undefined): Operation | undefined {
  if (readBy !== undefined) {
    return Object.values(paths).map(({ get }) => get).find((get) => get?.operationId === readBy)
  }
  return paths[itemOf(paths, path) ?? '']?.['get']
}

function itemOf (paths: Document['paths'], path: string): string | undefined {
  return Object.keys(paths).find((other) => other.startsWith(`${path}/{`) && other.endsWith('}'))
}

/** The runtime expression by which links name the id of a new record. */
const ID = '$response.body#/id'

/**
 * Returns links to all operations that accept the id of a new record in their path or query. A link with a body is
 * valid as well, but several generators refuse the whole document because of it.
 */
export function linksOf (document: Document, path: string, readBy: string | undefined): Answer['links'] & object {
  const { paths } = document
  const links: Answer['links'] & object = {}
  const item = itemOf(paths, path)
  const idName = item?.slice(path.length + 2, -1)
  for (const [otherPath, methods] of Object.entries(paths)) {
    // A second id is not that of the new record.
    if (otherPath.split('{').length > 2) continue
    for (const { operationId, parameters } of Object.values(methods)) {
      const parameter = parameters?.find(({ in: place, name, schema }) => acceptsId(otherPath, place, name, schema))
      if (parameter === undefined) continue
      links[operationId] = { operationId, parameters: { [parameter.name]: ID } }
    }
  }
  if (readBy !== undefined) {
    links[readBy] = {
      operationId: readBy, description: `\`${readBy}\` returns the new record if you send the new API key.`
    }
  }
  return links

  function acceptsId (otherPath: string, place: string, name: string, schema: Schema): boolean {
    if (place !== 'path' && place !== 'query') return false
    if (name === idName) return true
    return otherPath === path && name === 'id' && schema.type !== undefined
  }
}
