// Prepares a fresh clone. Each npm script runs it first, so that each script works as the first command after
// `git clone`. Without a step it installs the packages of package.json and generates the Prisma clients.
//
//   node scripts/prepare.mjs              prepares the sources
//   node scripts/prepare.mjs build        also bundles src to dist
//   node scripts/prepare.mjs build types  also bundles src to dist and writes the types of the package
//   node scripts/prepare.mjs tools        also installs the packages of test/package.json: linter, compiler, browsers …
//   node scripts/prepare.mjs client       also installs those packages, and writes the types of the package's client
//   node scripts/prepare.mjs build test   also bundles src to dist, and installs the packages of test and sets up tap
//
// The script skips a step whose output exists and comes from the same contents. It compares contents and not
// file dates, because a checkout gives each file a new date. These files import only modules of Node before the
// packages are installed.

import { join } from 'node:path'
import { build, declare } from './prepare/bundle.mjs'
import { describeOperations, describeTypes } from './prepare/api-client.mjs'
import { generateClients } from './prepare/clients.mjs'
import { Failure } from './prepare/files.mjs'
import { installPackages, installTools } from './prepare/packages.mjs'
import { setUpTap } from './prepare/tap.mjs'
import { copyViewer } from './prepare/viewer.mjs'

process.chdir(join(import.meta.dirname, '..'))

const steps = new Set(process.argv.slice(2))
const isStep = (...names) => names.some((name) => steps.has(name))

try {
  await installPackages()
  copyViewer()
  await generateClients()
  if (isStep('build', 'client', 'test', 'types')) describeOperations()
  if (isStep('build')) await build()
  if (isStep('tools', 'client', 'test', 'types')) await installTools()
  if (isStep('client', 'types')) describeTypes()
  if (isStep('types')) declare()
  if (isStep('test')) setUpTap()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  console.error(`\n${error.message}`)
  process.exitCode = 1
}
