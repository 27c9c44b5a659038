// Prepares a clone and then runs a program of the project. The npm scripts use it, so that each of them works as
// the first command after `git clone`.
//
//   node scripts/run.mjs build -- dist/cli.js start --demo
//
// The words before `--` are the steps of scripts/prepare.mjs. The program runs in this process and not in a child
// process, so that it receives each signal once and its exit code is the exit code of the npm script.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = join(import.meta.dirname, '..')
const separator = process.argv.indexOf('--')
const steps = process.argv.slice(2, separator)
const [program, ...args] = process.argv.slice(separator + 1)

// The steps run in a child process: this process could not load a SQLite binary that they recompile.
const { status } = spawnSync(process.execPath, [join(root, 'scripts/prepare.mjs'), ...steps], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

const file = join(root, program)
process.argv = [process.execPath, file, ...args]
if (file.endsWith('.ts')) await import('tsx')
await import(pathToFileURL(file).href)
