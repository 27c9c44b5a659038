// Ends a script with the npm that runs it. npm passes a signal only to the shell that it starts, and a shell such as
// dash ends without passing it on. Without this the service would live on, with its port and its database.

import { execFile } from 'node:child_process'
import { fstatSync, readFileSync, statSync } from 'node:fs'
import { promisify } from 'node:util'

const INTERVAL_MS = 500

/**
 * Calls a function once when the npm that runs this script has ended. For `npm start` also when the process that
 * started npm has ended, because nobody would stop that npm any more. A service in the background is different: a shell
 * gives it no input, and it outlives that shell.
 *
 * @param {() => void} onEnd
 */
export async function watchNpm (onEnd) {
  if (process.env.npm_lifecycle_event === undefined) return
  const links = await ancestry()
  const timer = setInterval(() => {
    if (links.every(isIntact)) return
    clearInterval(timer)
    onEnd()
  }, INTERVAL_MS)
  // The program ends when it has nothing else to do.
  timer.unref()
}

/**
 * Returns the processes from this one up to npm, or up to the process that started npm.
 *
 * @returns {Promise<Array<{ child: number, parent: number }>>}
 */
async function ancestry () {
  const links = [{ child: process.pid, parent: process.ppid }]
  const shell = await processOf(process.ppid)
  if (shell === undefined) return links
  let npm = shell
  // Some shells replace themselves with the program. Then the parent is npm already.
  if (shell.command.includes('run.mjs')) {
    links.push({ child: shell.pid, parent: shell.parent })
    const above = await processOf(shell.parent)
    if (above === undefined) return links
    npm = above
  }
  if (process.env.npm_lifecycle_event === 'start' && npm.parent > 1 && !isInBackground()) {
    links.push({ child: npm.pid, parent: npm.parent })
  }
  return links
}

function isIntact ({ child, parent }) {
  if (child === process.pid && process.ppid !== parent) return false
  // A child of a process that has ended gets another parent, also while the ended process is still a zombie.
  return process.platform === 'linux' ? readProcess(child)?.parent === parent : isRunning(parent)
}

function isRunning (pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** POSIX shells without job control give commands in the background /dev/null as their input. nohup does, too. */
function isInBackground () {
  if (process.platform === 'win32') return true
  try {
    return fstatSync(0).rdev === statSync('/dev/null').rdev
  } catch {
    return true
  }
}

/** Returns the parent and the command line of a process, or `undefined` if it has ended. */
async function processOf (pid) {
  if (process.platform === 'linux') return readProcess(pid)
  const [program, ...args] = process.platform === 'win32'
    ? ['powershell', '-NoProfile', '-Command',
        `Get-CimInstance Win32_Process -Filter 'ProcessId=${pid}' | % { "$($_.ParentProcessId) $($_.CommandLine)" }`]
    : ['ps', '-o', 'ppid=,command=', '-p', String(pid)]
  const { stdout } = await promisify(execFile)(program, args).catch(() => ({ stdout: '' }))
  const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? []
  return parent === undefined ? undefined : { pid, parent: Number(parent), command }
}

function readProcess (pid) {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    // The second field is the name of the program in parentheses, and can contain spaces and parentheses.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
    return { pid, parent: Number(parent), command }
  } catch {
    return undefined
  }
}
