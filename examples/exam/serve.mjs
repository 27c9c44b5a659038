import { createInterface } from 'node:readline'

/**
 * Reads tasks from standard input, a line each, and writes the answers to standard output.
 *
 * @param connect makes the client under test, from the first task
 * @param tasks a function for each task, which gets the client and the arguments
 */
export async function serve (connect, tasks) {
  let client
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, do: name, url, apiKey, timeoutMs, args } = JSON.parse(line)
    client ??= connect({ url, apiKey, timeoutMs })
    console.log(JSON.stringify({ id, ...await answer(tasks[name], client, args) }))
  }
  // A receiver of webhooks would keep the process.
  process.exit()
}

async function answer (task, client, args) {
  if (task === undefined) return { ok: false, error: { code: 'unknown_task', text: 'The client has nothing for this.' } }
  try {
    return { ok: true, result: await task(client, args) }
  } catch ({ status, code, message }) {
    return { ok: false, error: { status, code, text: message } }
  }
}
