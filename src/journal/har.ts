import { STATUS_CODES } from 'node:http'
import { packageInfo } from '../folders.ts'
import type { RecordedRequest } from './schemas.ts'

export const HAR_TYPE = 'application/har+json'

const HTTP_VERSION = 'HTTP/1.1'

/** What the journal does not know, in the words of the format. */
const UNKNOWN = -1

/**
 * Returns recorded requests as an HTTP Archive 1.2 (http://www.softwareishard.com/blog/har-12-spec). A request without a
 * response has the status 0, as browsers write it.
 *
 * @param address where clients reach the service, such as `PUBLIC_URL`; the paths of the requests follow it
 */
export function toHar (requests: RecordedRequest[], address: string): object {
  const creator = { name: 'petstore', version: packageInfo.version }
  return { log: { version: '1.2', creator, entries: requests.map((request) => entryOf(request, address)) } }
}

function entryOf (recorded: RecordedRequest, address: string): object {
  const { id, at, durationMs, outcome, attemptOf, faultId } = recorded
  return {
    startedDateTime: at,
    time: durationMs,
    request: requestOf(recorded, address),
    response: responseOf(recorded),
    cache: {},
    timings: { send: 0, wait: durationMs, receive: 0 },
    _id: id,
    _outcome: outcome,
    ...attemptOf === undefined ? {} : { _attemptOf: attemptOf },
    ...faultId === undefined ? {} : { _faultId: faultId }
  }
}

function requestOf ({ method, path, fields, body, bodyTruncated }: RecordedRequest, address: string): object {
  const url = new URL(address + path)
  const comment = bodyTruncated === true ? { comment: 'The body was longer.' } : {}
  return {
    method,
    url: url.href,
    httpVersion: HTTP_VERSION,
    cookies: [],
    headers: fields,
    queryString: [...url.searchParams].map(([name, value]) => ({ name, value })),
    ...body === undefined ? {} : { postData: { mimeType: typeOf(fields), params: [], text: body, ...comment } },
    headersSize: UNKNOWN,
    bodySize: sizeOf(body, bodyTruncated)
  }
}

function responseOf ({ status, answerFields = [], answer, answerTruncated }: RecordedRequest): object {
  const size = sizeOf(answer, answerTruncated)
  const comment = answerTruncated === true ? { comment: 'The body was longer.' } : {}
  return {
    status: status ?? 0,
    statusText: STATUS_CODES[status ?? 0] ?? '',
    httpVersion: HTTP_VERSION,
    cookies: [],
    headers: answerFields,
    content: { size, mimeType: typeOf(answerFields), ...answer === undefined ? {} : { text: answer }, ...comment },
    redirectURL: '',
    headersSize: UNKNOWN,
    bodySize: size
  }
}

function sizeOf (body = '', isTruncated = false): number {
  return isTruncated ? UNKNOWN : Buffer.byteLength(body)
}

function typeOf (fields: RecordedRequest['fields']): string {
  return fields.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? ''
}
