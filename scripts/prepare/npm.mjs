// Runs npm.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
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
  // npm_config_jobs lets node-gyp compile SQLite on all cores. The reason for the flag is in the file that it names.
  const flags = `${process.env.CXXFLAGS ?? ''} -include "${join(import.meta.dirname, 'object-wrap.h')}"`
  const env = { ...process.env, ...headers(), npm_config_jobs: 'max', CXXFLAGS: flags }
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

/** Points node-gyp to the headers beside Node, if they exist: they need no download and match the version. */
function headers () {
  const prefix = join(process.execPath, '..', '..')
  return existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
}
