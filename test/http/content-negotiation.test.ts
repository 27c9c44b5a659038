// Only on SQLite: calls a pure function.

import t from 'tap'
import { qualityOf } from '../../src/http/content-negotiation.ts'

const QUALITIES: Array<[accept: string, stream: number, json: number]> = [
  ['', 0, 0],
  ['text/event-stream', 1, 0],
  ['Text/Event-Stream ; charset=utf-8', 1, 0],
  ['text/event-stream;q=0', 0, 0],
  ['text/event-stream; Q=0.000, */*', 0, 1],
  ['text/event-stream;charset=utf-8;q=0.5, application/json;q=0.4', 0.5, 0.4],
  ['text/*;q=0.3, */*;q=0.1', 0.3, 0.1],
  ['text/event-stream;q=0.2, text/*;q=0.9', 0.2, 0],
  ['*/*;q=1.000', 1, 1],
  ['text/event-streams, application/jsonx', 0, 0],
  ['text/event-stream;q=0.5, application/json;profile="a,b;q=1";q=0.1', 0.5, 0.1]
]

t.test('the most specific range decides the quality of a media type', async (t) => {
  for (const [accept, stream, json] of QUALITIES) {
    t.same(
      ['text/event-stream', 'application/json'].map((type) => qualityOf(accept, type)), [stream, json], accept)
  }
})
