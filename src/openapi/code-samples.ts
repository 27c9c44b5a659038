import { exampleOf, type Document, type Operation, type Sample } from './document.ts'

interface SampleRequest {
  method: string
  url: string
  headers: Record<string, string>
  /** A text is sent as it is, any other value as JSON. */
  body: unknown
  /** What the response has, if it has a body. */
  answer: 'JSON' | 'text' | undefined
}

/**
 * Returns a sample request of an operation in curl, JavaScript and Python, from the examples of its schemas. The
 * samples need no packages. Readers replace `<API_KEY>` and the ids.
 */
export function codeSamples (document: Document, server: string, path: string, method: string): Sample[] {
  const { parameters = [], requestBody, responses, security } = document.paths[path]![method]!
  const [[type, { example: body }] = ['', {}]] = Object.entries(requestBody?.content ?? {})
  const request: SampleRequest = {
    method: method.toUpperCase(),
    url: server + path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const parameter = parameters.find((candidate) => candidate.in === 'path' && candidate.name === name)
      const { example, schema = {} } = parameter ?? {}
      return encodeURIComponent(String(example ?? exampleOf(document, schema)))
    }),
    headers: {
      ...security?.length === 0 ? {} : { Authorization: 'Bearer <API_KEY>' },
      ...body === undefined ? {} : { 'Content-Type': type }
    },
    body,
    answer: answerOf(responses)
  }
  return [
    { lang: 'shell', label: 'curl', source: curl(request) },
    { lang: 'javascript', label: 'JavaScript', source: javascript(request) },
    { lang: 'python', label: 'Python', source: python(request) }
  ]
}

function answerOf (responses: Operation['responses']): SampleRequest['answer'] {
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? []
  if (success?.content === undefined) return undefined
  return success.content['application/json'] === undefined ? 'text' : 'JSON'
}

function curl ({ method, url, headers, body }: SampleRequest): string {
  const implied = body === undefined ? 'GET' : 'POST'
  return [
    `curl ${method === implied ? '' : `-X ${method} `}${url}`,
    ...Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`),
    // Inside single quotes, a shell interprets no character but the single quote.
    ...body === undefined ? [] : [`-d '${(typeof body === 'string' ? body : JSON.stringify(body)).replaceAll("'", "'\\''")}'`]
  ].join(' \\\n  ')
}

function javascript ({ method, url, headers, body, answer }: SampleRequest): string {
  const options = [
    ...method === 'GET' ? [] : [`method: "${method}"`],
    ...Object.keys(headers).length === 0 ? [] : [`headers: ${json(headers)}`],
    ...body === undefined ? [] : [`body: ${typeof body === 'string' ? json(body) : `JSON.stringify(${json(body)})`}`]
  ]
  const read = answer === undefined ? '' : `, await response.${answer === 'JSON' ? 'json' : 'text'}()`
  return `const response = await fetch("${url}", {
  ${options.join(',\n  ')}
})
console.log(response.status${read})`

  function json (value: unknown): string {
    return JSON.stringify(value, null, 2).replace(/^( *)"([A-Za-z]\w*)":/gm, '$1$2:').replaceAll('\n', '\n  ')
  }
}

function python ({ method, url, headers, body, answer }: SampleRequest): string {
  const settings = [
    `"${url}"`,
    ...method === 'GET' ? [] : [`method="${method}"`],
    `headers=${literal(headers)}`,
    ...body === undefined ? [] : [`data=${typeof body === 'string' ? literal(body) : `json.dumps(${literal(body)})`}.encode()`]
  ]
  const sendsJson = body !== undefined && typeof body !== 'string'
  const read = { JSON: ', json.load(response)', text: ', response.read().decode()', none: '' }[answer ?? 'none']
  return `${sendsJson || answer === 'JSON' ? 'import json\n' : ''}from urllib.request import Request, urlopen

request = Request(
    ${settings.join(',\n    ')},
)
with urlopen(request) as response:
    print(response.status${read})`
}

/** Returns a JSON value as a Python literal. */
function literal (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (value !== null && typeof value === 'object') {
    return `{${Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${literal(inner)}`).join(', ')}}`
  }
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return value === null ? 'None' : JSON.stringify(value)
}
