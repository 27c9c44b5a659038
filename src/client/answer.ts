/** The content of an answer, and the response with its header fields. */
export interface Received<Content> {
  data: Content
  response: Response
}

export type SendNext = (search: string) => Promise<Received<unknown>>

/**
 * Returns the promise of a content that can also give its response, and of a list that can be iterated over.
 *
 * @param sendNext sends the same request with another query; only for a list
 */
export function answerOf (sent: Promise<Received<unknown>>, sendNext?: SendNext): Promise<unknown> {
  const content = sent.then(({ data }) => data)
  const handled = (): Promise<Received<unknown>> => {
    // The caller waits for `sent` instead. A failure of `content` would end the process as an unhandled rejection.
    content.catch(() => {})
    return sent
  }
  return Object.assign(content, {
    withResponse: handled,
    ...sendNext === undefined ? {} : { [Symbol.asyncIterator]: () => recordsOf(handled(), sendNext) }
  })
}

/** Iterates over the records of a list, page by page: `Link` leads to the next page (RFC 8288). */
async function * recordsOf (first: Promise<Received<unknown>>, sendNext: SendNext): AsyncGenerator<unknown, void> {
  for (let page: Received<unknown> | undefined = await first; page !== undefined;) {
    if (page.data === undefined) {
      throw new TypeError('The list is unchanged (304), so it has no records to iterate over. Await it instead')
    }
    yield * page.data as unknown[]
    const next = nextOf(page.response.headers.get('link') ?? '')
    page = next === undefined ? undefined : await sendNext(next)
  }
}

/**
 * Returns the query of the next page. The rest of the address is that of the request: a service behind a proxy can name
 * another host, to which the client must not send the key.
 */
function nextOf (link: string): string | undefined {
  const target = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link)?.[1]
  return target === undefined ? undefined : new URL(target, 'http://localhost').search.slice(1)
}
