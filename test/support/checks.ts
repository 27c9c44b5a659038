import type { Test } from 'tap'
import type { Answer, Client, TestApp } from './app.ts'

/** The format of an API key. */
export const KEY = /^psk_[0-9A-Za-z]{8}_[0-9A-Za-z]{33,}$/

/** Checks the status and the whole body of an answer. */
export function assertResponse (t: Test, answer: Answer, status: number, body?: unknown, message?: string): void {
  t.same({ status: answer.status, body: answer.body }, { status, body }, message ?? `${status}`)
}

/**
 * Checks that an error has exactly these three members and a readable message, and that no cache may store it. This is
 * one assertion, because tests check thousands of errors.
 */
export function assertError (
  t: Test, answer: Answer, status: number, code: string, says: RegExp | string = /\w/, message?: string
): void {
  const { body, headers } = answer
  const said: unknown = body?.message
  const isRight = typeof said === 'string' && (typeof says === 'string' ? said.includes(says) : says.test(said))
  const found = { status: answer.status, body, type: headers['content-type'], caching: headers['cache-control'] }
  t.same(found, {
    status,
    body: { code, message: isRight ? said : says, status },
    type: 'application/json; charset=utf-8',
    caching: 'no-store'
  }, message ?? `${status} ${code}`)
}

/** Returns the parts that a replay has in common with the first answer. */
export function replayableParts ({ status, text, headers: { etag, location, 'content-type': type } }: Answer): object {
  return { status, text, etag, location, type }
}

export function assertReplayed (t: Test, replay: Answer, first: Answer, message: string): void {
  t.same(replayableParts(replay), replayableParts(first), message)
  const marks = [first, replay].map(({ headers }) => headers['idempotency-replayed'])
  t.same(marks, [undefined, 'true'], `${message}, and is marked as a replay`)
}

/** Checks that a page of a list shows exactly these records. */
export function assertListed (t: Test, answer: Answer, ids: unknown[], message?: string): void {
  const page: Array<{ id?: unknown, petId?: unknown }> = Array.isArray(answer.body) ? answer.body : []
  const found = page.map(({ id, petId }) => id ?? petId)
  t.same({ status: answer.status, ids: found }, { status: 200, ids }, message ?? answer.text)
}

export async function readerOf (client: Client, withKey: TestApp['withKey']): Promise<Client> {
  const { body } = await client.post('/account/keys', { readOnly: true })
  return withKey(body.apiKey, client.account)
}

type InputTable<Input> = Array<[input: Input, says: RegExp | string]>

/** Checks that each input of a table gets 400 `validation_failed` with the message next to it. */
export async function assertRejectsInput<Input> (
  t: Test, send: (input: Input) => Promise<Answer>, table: InputTable<Input>
): Promise<void> {
  for (const [input, says] of table) {
    assertError(t, await send(input), 400, 'validation_failed', says, shown(input))
  }
}

function shown (input: unknown): string {
  const text = JSON.stringify(input) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/** Follows `rel="next"` to the last page. @returns all records */
export async function walk (client: Client, path: string): Promise<unknown[]> {
  const found: unknown[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const page: Answer = await client.get(next)
    if (page.status !== 200) throw new Error(`${next} answers ${page.text}`)
    found.push(...page.body)
    next = linkOf(page, 'next')
  }
  return found
}

export function linkOf ({ headers }: Answer, rel: string): string | undefined {
  const link = String(headers.link ?? '').split(', ').find((part) => part.endsWith(`; rel="${rel}"`))
  return link?.slice(1, link.indexOf('>'))
}
