// Runs npm.

import { spawn } from 'node:child_process'
import { Failure } from './files.mjs'

/** The processes of npm. */
const running = new Set()

/** Stops npm with this process: without a terminal, a signal reaches only this process. */
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of running) child.kill(signal)
    process.exit(1)
  })
}

/** Runs npm in a folder. */
export async function npm (folder, ...args) {
  // npm sets npm_execpath in the scripts that it runs. Without it, use npm from the PATH, a .cmd file on Windows.
  const own = process.env.npm_execpath
  const env = { ...process.env }
  // The outer npm says by these which project it runs a script of.
  for (const name of ['npm_config_local_prefix', 'npm_config_prefix', 'npm_package_json']) delete env[name]
  const options = { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], env }
  const child = own?.endsWith('npm-cli.js')
    ? spawn(process.execPath, [own, ...args], options)
    : spawn('npm', args, { ...options, shell: process.platform === 'win32' })
  running.add(child)
  const code = await new Promise((resolve, reject) => {
    child.once('error', error => reject(new Failure(`npm cannot be started: ${error.message}`))).once('close', resolve)
  })
  running.delete(child)
  if (code !== 0) throw new Failure(`npm ${args[0]} failed. Its output is above.`)
}
