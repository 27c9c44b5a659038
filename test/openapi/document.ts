import type { Test } from 'tap'
import type { Document, Operation } from '../../src/openapi/document.ts'
import { startApp, type Client } from '../support/app.ts'
import { expandComponents } from '../support/expand-components.ts'

type Full = Document & {
  tags: Array<{ name: string, description: string, 'x-parent'?: string }>
  security: unknown
  'x-tagGroups': Array<{ name: string, tags: string[] }>
}
type Extended = Operation & Record<`x-${string}`, unknown> & { summary?: string }

/** The document as a service answers it, and its operations in a row. */
export async function servedDocument (
  t: Test
): Promise<{
  nobody: Client
  document: Full
  text: string
  operations: Array<{ path: string, method: string, operation: Extended }>
}> {
  const { nobody } = await startApp(t)
  const { body, text } = await nobody.get('/openapi.json')
  const document = expandComponents(body as Full)
  return { nobody, document, text, operations: operationsInOrder(document) }
}

/** The operations of a served document in its order, with their parameters and responses written out. */
export function operationsInOrder (served: object): Array<{ path: string, method: string, operation: Extended }> {
  return Object.entries(expandComponents(served).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation: operation as Extended })))
}
