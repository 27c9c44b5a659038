// Builds or downloads the native part of better-sqlite3.

import { spawnSync } from 'node:child_process'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { Failure, readJson } from './files.mjs'
import { npm } from './npm.mjs'

const PACKAGE = 'node_modules/better-sqlite3'
const BINARY = `./${PACKAGE}/build/Release/better_sqlite3.node`

/** Keeps the binary while npm replaces node_modules. */
const KEPT = '.sqlite-build'

/** Interval between two lines that say that the compiler still runs. */
const LINE_INTERVAL_MS = 15_000

/** Prepares SQLite if its binary is missing or is for another version of Node. */
export async function compileSqlite () {
  if (loads()) return
  const version = `Node ${process.versions.node}`
  console.error(`Preparing SQLite for ${version}. This takes a minute or two if it has to be compiled …`)
  const began = Date.now()
  const timer = setInterval(() => {
    console.error(`Still preparing SQLite, for ${Math.round((Date.now() - began) / 1_000)} s …`)
  }, LINE_INTERVAL_MS)
  try {
    await npm('.', 'rebuild', 'better-sqlite3', '--loglevel=error')
  } finally {
    clearInterval(timer)
  }
  if (loads()) return
  throw new Failure(`npm did not build better-sqlite3 for ${version}. ` +
    'To see the reason, run `npm rebuild better-sqlite3 --foreground-scripts`.')
}

/**
 * Runs an installation, which deletes node_modules, and keeps the binary if the package stays at its version: compiling
 * it again would take minutes.
 */
export async function keepingSqlite (install) {
  const version = () => existsSync(`${PACKAGE}/package.json`) ? readJson(`${PACKAGE}/package.json`).version : undefined
  const before = version()
  rmSync(KEPT, { recursive: true, force: true })
  if (loads()) renameSync(`${PACKAGE}/build`, KEPT)
  try {
    await install()
    if (existsSync(KEPT) && version() === before) renameSync(KEPT, `${PACKAGE}/build`)
  } finally {
    rmSync(KEPT, { recursive: true, force: true })
  }
}

/** Loads the binary in a process of its own: a process keeps a binary that it failed to load. */
function loads () {
  return spawnSync(process.execPath, ['-e', `require('${BINARY}')`]).status === 0
}
