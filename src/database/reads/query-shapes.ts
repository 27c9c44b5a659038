import { LRUCache } from 'lru-cache'
import { getOrAdd } from '../get-or-add.ts'

/**
 * Maximum number of shapes whose queries are kept, with their texts of about 10 KB. Clients choose the shape of a list:
 * the lists of pets alone have 1,600, by filters, order and length.
 */
const MAX_SHAPES = 500

const queries = new LRUCache<string, object>({ max: MAX_SHAPES })

/** Returns the query of a shape, so that reads of the same shape share a statement. Builds it if it is not kept. */
export function queryOfShape<AnyQuery extends object> (shape: string, build: () => AnyQuery): AnyQuery {
  return getOrAdd(queries, shape, build) as AnyQuery
}
