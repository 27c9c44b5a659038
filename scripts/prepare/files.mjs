// Reads files, and tells whether the output of a step comes from the current contents of its sources.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** An error whose message is all that the user needs. */
export class Failure extends Error {}

/** Returns a hash of the names and contents of files. */
export function fingerprint (files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(read(file)).update('\0')
  return hash.digest('hex')
}

export function filesBelow (folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}

export function stampOf (folder) {
  return existsSync(`${folder}/.stamp`) ? readFileSync(`${folder}/.stamp`, 'utf8') : undefined
}

export function writeStamp (folder, stamp) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/.stamp`, stamp)
}

export function read (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`The file ${file} cannot be read (${error.code}).`)
  }
}

export function readJson (file) {
  return JSON.parse(read(file))
}

/** Runs a program of a package. Prints its output only if it fails. */
export function runNode (name, args, options = {}) {
  const done = spawnSync(process.execPath, args, { encoding: 'utf8', ...options })
  if (done.status !== 0) throw new Failure(`${name} failed:\n${done.stdout}${done.stderr}`)
}
