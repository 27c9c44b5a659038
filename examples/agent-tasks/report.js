/** How many requests of a finding are shown: the first ones. */
const SHOWN = 12

/** How many lines of an answer are shown: the last ones. */
const SHOWN_LINES = 6

/** Returns the lines about a task, with the requests that show what the agent did. */
export function linesOf ({ task, findings, answer }) {
  const verdict = findings.length === 0 ? 'passed' : 'failed'
  const lines = findings.flatMap(({ text, requests = [] }) => [
    text,
    ...requests.slice(0, SHOWN).map((request) => `    ${lineOf(request)}`),
    ...requests.length > SHOWN ? [`    and ${requests.length - SHOWN} more`] : []
  ])
  if (findings.length > 0 && answer.trim() !== '') {
    lines.push('The agent answered:', ...answer.trim().split('\n').slice(-SHOWN_LINES).map((line) => `    ${line}`))
  }
  return [`${task.padEnd(22)}${verdict}`, ...lines.map((line) => `    ${line}`)].map(printable)
}

function lineOf ({ id, method, path, body, status, outcome, idempotencyKey }) {
  const answered = outcome === 'answered' ? status : [status, outcome].filter(Boolean).join(' ')
  const key = idempotencyKey === undefined ? '' : `, Idempotency-Key ${idempotencyKey}`
  return `request ${id}: ${method} ${path}${body === undefined ? '' : ` ${body}`} → ${answered}${key}`
}

/** An agent's answer must not steer the terminal. */
function printable (line) {
  // eslint-disable-next-line no-control-regex
  return line.replaceAll(/[\x00-\x1f\x7f-\x9f]/g, '\ufffd')
}
