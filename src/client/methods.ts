import type { operations } from '../generated/client/openapi.ts'

// The types of the client's methods, derived from the generated types of the operations. A method takes the ids of the
// path, then the body or the query, then options.

export type OperationId = keyof operations

/** What the client knows of an operation when it runs. The generated table has it from the document. */
export interface OperationFacts {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  path: string
  /** The names of the parameters in the path, in their order. */
  ids?: readonly string[]
  sends?: 'query' | 'body'
  /** The media type of the body, a text, if it is not JSON. */
  bodyType?: string
  /** The operation takes an `Idempotency-Key`. */
  isKeyed?: true
  /** The documented success: its status, its content if it has one, and the schema of each record. */
  success: { status: number, content?: 'list' | 'record' | 'text', record?: string }
}

/** The members that each record of a schema has, and the types of its members in terms of JSON Schema. */
export interface RecordFacts {
  required: string[]
  types: Record<string, string>
}

export interface CallOptions {
  /** Ends the call, with its retries. */
  signal?: AbortSignal | undefined
  /** The time for each attempt. Default: that of the client. */
  timeoutMs?: number | undefined
  /** How often the request is sent again. Default: that of the client. */
  retries?: number | undefined
}

type Operation = operations[OperationId]

type HeadersOf<O extends Operation> = O['parameters'] extends { header?: infer H } ? NonNullable<H> : unknown

type OptionsOf<O extends Operation> = CallOptions & {
  /** Header fields of the request. An `Idempotency-Key` of your own replaces the one that the client makes. */
  headers?: (HeadersOf<O> & Record<string, unknown>) | Iterable<readonly [string, string]> | undefined
}

/** The id of the path; with two names, also that of a record within the record. */
type IdsOf<O extends Operation> = O['parameters'] extends { path: infer P } ? IdsOfPath<P> : []

type IdsOfPath<P, Name = keyof P> = Name extends keyof P
  ? [Exclude<keyof P, Name>] extends [never] ? [id: P[Name]] : [id: P[keyof P], innerId: P[keyof P]]
  : never

/** Content is JSON, or else a text. */
type ContentOf<C> = C extends { content: { 'application/json': infer Body } } ? Body
  : C extends { content: { 'application/x-ndjson': infer Lines } } ? Lines : never

type BodyOf<O extends Operation> =
  O extends { requestBody: infer B } ? [body: ContentOf<B>]
    : O extends { requestBody?: infer B } ? [NonNullable<B>] extends [never] ? [] : [body?: ContentOf<NonNullable<B>>]
      : []

type QueryOf<O extends Operation> =
  O['parameters'] extends { query?: infer Q } ? [NonNullable<Q>] extends [never] ? [] : [query?: Q] : []

type SuccessOf<O extends Operation> = {
  [Status in keyof O['responses']]: Status extends 200 | 201 | 202 ? ContentOf<O['responses'][Status]>
    : Status extends 204 ? undefined : never
}[keyof O['responses']]

/** A 304 has no content. */
type AnswerOf<O extends Operation, Options> =
  Options extends { headers: { 'If-None-Match': string } }
    ? O['responses'] extends { 304: unknown } ? SuccessOf<O> | undefined : SuccessOf<O>
    : SuccessOf<O>

/** The answer of an operation: a promise of its content. The answer of a list is also all records of all its pages. */
export type Answer<Content> = Promise<Content> & {
  /** Returns the content with the response, for its status and header fields such as `ETag`. */
  withResponse: () => Promise<{ data: Content, response: Response }>
} & (Content extends ReadonlyArray<infer Item> ? AsyncIterable<Item> : unknown)

export type Method<O extends Operation> = <Options extends OptionsOf<O>>(
  ...args: [...IdsOf<O>, ...BodyOf<O>, ...QueryOf<O>, options?: Options]
) => Answer<AnswerOf<O, Options>>
