import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentFailed } from './examine.js'

const isWindows = process.platform === 'win32'

/**
 * Returns a function that runs an agent for a task: a command for the shell, which gets the words on its standard input
 * and writes its answer to its standard output.
 */
export function agentOf (command, { timeoutSeconds }) {
  return async ({ mcpUrl, apiKey, words }) => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-agent-'))
    const config = join(folder, 'mcp.json')
    const server = { type: 'http', url: mcpUrl, headers: { Authorization: `Bearer ${apiKey}` } }
    writeFileSync(config, JSON.stringify({ mcpServers: { petstore: server } }))
    const env = { PETSTORE_MCP_URL: mcpUrl, PETSTORE_API_KEY: apiKey, PETSTORE_MCP_CONFIG: config }
    try {
      return await run(command, { env, words, timeoutSeconds })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function run (command, { env, words, timeoutSeconds }) {
  // In a group of its own, so that all of its processes can be ended.
  const child = spawn(command, {
    shell: true, detached: !isWindows, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit']
  })
  const end = () => {
    try {
      process.kill(isWindows ? child.pid : -child.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  process.once('exit', end)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    end()
  }, timeoutSeconds * 1000)
  let answer = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { answer += text })
  // An agent need not read its words.
  child.stdin.on('error', () => {}).end(words)
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (code, signal) => { resolve(code ?? signal) })
  })
  clearTimeout(timer)
  process.off('exit', end)
  end()
  if (isLate) throw new AgentFailed(`The agent did not end within ${timeoutSeconds} s.`)
  if (code !== 0) throw new AgentFailed(`The agent ended with ${code}.`)
  return answer
}
