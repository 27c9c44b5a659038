// Prepares a clone and then runs a program of the project. The npm scripts use it, so that each of them works as
// the first command after `git clone`.
//
//   node scripts/run.mjs build -- dist/cli.js start --demo
//
// The words before `--` are the steps of scripts/prepare.mjs. The program runs in this process and not in a child
// process, so that it receives each signal once and its exit code is the exit code of the npm script.

import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { watchNpm } from './npm-watch.mjs'

/** The exit code of a program that SIGTERM ended. */
const TERMINATED = 128 + 15

const root = join(import.meta.dirname, '..')
const separator = process.argv.indexOf('--')
const steps = process.argv.slice(2, separator)
const [program, ...args] = process.argv.slice(separator + 1)

/** @type {import('node:child_process').ChildProcess | undefined} */
let preparation
void watchNpm(stop)

const code = await prepare()
if (code !== 0) process.exit(code)

const file = join(root, program)
process.argv = [process.execPath, file, ...args]
// tsx is a package of test/package.json. The step `tools` installs it.
if (file.endsWith('.ts')) {
  const { resolve } = createRequire(join(root, 'test/package.json'))
  await import(pathToFileURL(resolve('tsx')).href)
}
await import(pathToFileURL(file).href)

/** Runs the steps in a child process: this process keeps nothing of the generators that they load. */
async function prepare () {
  preparation = spawn(process.execPath, [join(root, 'scripts/prepare.mjs'), ...steps], { stdio: 'inherit' })
  const [code] = await new Promise((resolve, reject) => {
    preparation.once('error', reject).once('close', (...results) => resolve(results))
  })
  preparation = undefined
  return code ?? 1
}

/** Ends the program as SIGTERM does, on Windows as well, where a process cannot send it. */
function stop () {
  preparation?.kill('SIGTERM')
  if (process.listenerCount('SIGTERM') === 0) process.exit(TERMINATED)
  process.emit('SIGTERM', 'SIGTERM')
}
