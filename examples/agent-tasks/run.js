// Puts an agent before the tasks, and prints what it did. Exits with 0 if it passes all, 1 if not, 2 if it cannot run.
import { parseArgs } from 'node:util'
import { createStore } from 'petstore-lab'
import { agentOf } from './agent-process.js'
import { examine } from './examine.js'
import { linesOf } from './report.js'
import { tasks } from './tasks.js'

const USAGE = `Usage: node run.js --agent COMMAND [options]

  --agent COMMAND    starts the agent: it reads the task on its standard input, and writes its answer
  --url URL          a service with the lab; without it, a new one in this process
  --only NAME,NAME   only these tasks
  --timeout SECONDS  the time for each task (600)
  --json             prints the results for programs
  --list             lists the tasks`

// Ends the agent, too.
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]]) process.once(signal, () => process.exit(code))

try {
  process.exitCode = await main(readOptions())
} catch (error) {
  console.error(error.message)
  process.exitCode = 2
}

function readOptions () {
  const { values } = parseArgs({
    options: {
      agent: { type: 'string' },
      url: { type: 'string' },
      only: { type: 'string' },
      timeout: { type: 'string', default: '600' },
      json: { type: 'boolean' },
      list: { type: 'boolean' }
    }
  })
  if (values.agent === undefined && !values.list) throw new Error(USAGE)
  if (!(Number(values.timeout) > 0)) throw new Error(`--timeout must be a number of seconds\n\n${USAGE}`)
  const names = values.only?.split(',') ?? tasks.map(({ name }) => name)
  const unknown = names.find((name) => tasks.every((task) => task.name !== name))
  if (unknown !== undefined) throw new Error(`There is no task ${unknown}\n\n${USAGE}`)
  return { ...values, chosen: tasks.filter(({ name }) => names.includes(name)) }
}

async function main ({ agent, url, timeout, json, list, chosen }) {
  if (list) {
    for (const { name, goodAgent } of chosen) console.log(`${name.padEnd(22)}A good agent ${goodAgent}.`)
    return 0
  }
  const runAgent = agentOf(agent, { timeoutSeconds: Number(timeout) })
  const service = url === undefined
    ? await createStore({ settings: { LAB: true } })
    : { url: url.replace(/\/+$/, ''), settleMs: 1_000 }
  const results = []
  try {
    for (const task of chosen) {
      results.push(await examine(task, { url: service.url, settleMs: service.settleMs, runAgent }))
      if (!json) console.log(linesOf(results.at(-1)).join('\n'))
    }
  } finally {
    await service.close?.()
  }
  const passed = results.filter(({ findings }) => findings.length === 0).length
  console.log(json ? JSON.stringify(results, null, 2) : `\n${passed} of ${results.length} tasks passed.`)
  return passed === results.length ? 0 : 1
}
