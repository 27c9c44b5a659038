import type { FastifyRequest } from 'fastify'
import type { Page, PageRequest } from '../database/sql/keyset-pagination.ts'

/** The query parameter that tells where a page begins: the opaque cursor, or the number of an event. */
export type CursorParameter = 'cursor' | 'after'

/** The query of a list. */
export interface PageQuery extends Record<string, unknown> {
  limit?: number
  cursor?: string
  sort?: string
}

/** Parses the query of a list. All parameters but those of paging are filters. A list of ids fits on one page. */
export function pageRequest ({ limit, cursor, sort = 'id', ...filters }: PageQuery): PageRequest {
  const ids = Object.values(filters).find((filter) => Array.isArray(filter)) as unknown[] | undefined
  return {
    limit: limit ?? ids?.length ?? 20,
    descending: sort === '-id',
    after: cursor === undefined ? undefined : parseInt(cursor, 36),
    filters
  }
}

/** Returns the value of `Link`: the first page and, if there is one, the next. Both keep the rest of the query. */
export function pageLinks (
  { server, url }: FastifyRequest, next: Page['next'], parameter: CursorParameter
): string {
  const [path = '', search = ''] = url.split('?')
  const query = new URLSearchParams(search)
  query.delete(parameter)
  const first = linkTo(path, query)
  if (next === null) return `<${first}>; rel="first"`
  query.set(parameter, next.toString(parameter === 'cursor' ? 36 : 10))
  return `<${linkTo(path, query)}>; rel="next", <${first}>; rel="first"`

  function linkTo (path: string, query: URLSearchParams): string {
    return server.publicUrl + path + (query.size === 0 ? '' : `?${query.toString()}`)
  }
}
