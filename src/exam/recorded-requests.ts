import type { Pet, RecordedRequest } from '../client/client.ts'

// What papers read from recorded requests.

/** Returns the requests with an API key. */
export function requestsOf (journal: RecordedRequest[], { keyId }: { keyId: number }): RecordedRequest[] {
  return journal.filter((request) => request.keyId === keyId)
}

/** Returns the requests that name a pet in their path, in their query or in their body. */
export function requestsAbout (journal: RecordedRequest[], petId: number): RecordedRequest[] {
  const inPath = new RegExp(`/pets/${petId}(\\?|$)|[?&]id=${petId}(&|$)`)
  const inBody = new RegExp(`"petId":\\s*${petId}\\b`)
  return journal.filter(({ path, body = '' }) => inPath.test(path) || inBody.test(body))
}

/** Returns the time at which the response ended, by the account's clock. */
function endOf ({ at, durationMs }: RecordedRequest): number {
  return Date.parse(at) + durationMs
}

/** Returns the time between the end of a request and the arrival of a later one, in ms. */
export function pauseBetween (request: RecordedRequest, later: RecordedRequest): number {
  return Date.parse(later.at) - endOf(request)
}

/** Returns the pauses before all requests but the first. */
export function pausesOf (requests: RecordedRequest[]): number[] {
  return requests.slice(1).map((request, i) => pauseBetween(requests[i]!, request))
}

export function fieldOf ({ fields }: RecordedRequest, name: string): string | undefined {
  return valueOf(fields, name)
}

export function answerFieldOf ({ answerFields = [] }: RecordedRequest, name: string): string | undefined {
  return valueOf(answerFields, name)
}

function valueOf (fields: RecordedRequest['fields'], name: string): string | undefined {
  return fields.find((field) => field.name.toLowerCase() === name)?.value
}

/** Returns how long the response to a request asked the client to wait, in ms. */
export function retryAfterOf (request: RecordedRequest): number | undefined {
  const field = answerFieldOf(request, 'retry-after')
  if (field === undefined) return undefined
  return /^\d+$/.test(field) ? Number(field) * 1_000 : Date.parse(field) - endOf(request)
}

/** Returns how a finding calls a request. */
export function nameOf ({ id }: RecordedRequest): string {
  return `request ${id}`
}

/** Tells whether a result is the record, as far as the record goes. */
export function isSame (result: unknown, record: Partial<Pet>): boolean {
  if (typeof result !== 'object' || result === null) return false
  return Object.entries(record).every(([name, value]) => (result as Record<string, unknown>)[name] === value)
}

/** Returns a result in a sentence. */
export function shown (result: unknown): string {
  return (JSON.stringify(result) ?? 'nothing').slice(0, 200)
}
