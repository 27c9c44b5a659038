/** What a scenario needs: the service, and a receiver of webhooks. */
export interface Surroundings {
  url: string
  receiverUrl: string
  /** Waits for the next request to the receiver. */
  nextDelivery: () => Promise<Delivery>
}

export interface Delivery {
  body: string
  headers: Record<string, string>
}

/** What a client saw. The test expects the same of each. */
export interface Outcome {
  pet: { name: string, status: string | undefined }
  stock: number
  conflict: string
  pages: string[][]
  events: string[]
  delivered: string
}

/**
 * Opens an account and uses the store with one generated client: category, pet, count, order, a conflict, all pages of
 * a list, the feed, and a webhook.
 */
export type Scenario = (surroundings: Surroundings) => Promise<Outcome>

/** Returns the value of an answer that must have one. */
export function required<T> (value: T | undefined, problem: unknown): T {
  if (value === undefined) throw new Error(`no content: ${JSON.stringify(problem)}`)
  return value
}

/** Returns the cursor of the next page (RFC 8288). */
export function nextCursor (headers: Headers): string | undefined {
  const target = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return target === undefined ? undefined : new URL(target, 'http://localhost').searchParams.get('cursor') ?? undefined
}
