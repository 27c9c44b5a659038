// Only on SQLite: runs commands and samples of the pages over HTTP.

import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { readConfig } from '../../src/config.ts'

// No test builds the image; these hold its files against the service.

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const dockerfile = readFileSync(`${ROOT}Dockerfile`, 'utf8')
const ignored = readFileSync(`${ROOT}.dockerignore`, 'utf8').split('\n')
const { services } = parse(readFileSync(`${ROOT}compose.yaml`, 'utf8'), { merge: true }) as {
  services: Record<string, Service>
}

interface Service {
  image: string
  environment: Record<string, string>
  command?: string[]
  read_only: boolean
  healthcheck?: { test?: string[], disable?: boolean }
  depends_on?: Record<string, { condition: string }>
}

const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { scripts: { start: string } }

t.test('the image runs what is compiled, as nobody special, with a health check', async (t) => {
  const [, command = '[]'] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? []
  t.equal(
    (JSON.parse(command) as string[]).join(' '),
    scripts.start.replace('node scripts/prepare.mjs && exec ', '').replace(' --demo', ''),
    'as npm start, but for the demo'
  )
  t.match(dockerfile, /^USER node$/m)
  t.match(dockerfile, /^HEALTHCHECK [\s\S]*\/readyz/m)
  for (const [, image] of dockerfile.matchAll(/^FROM (\S+)/gm)) t.match(image, /^node:\d+\.\d+\.\d+-/, 'pinned')
})

t.test('the build has every file it needs, and no other', async (t) => {
  t.equal(ignored[0], '*', 'nothing that is not named')
  for (const name of [
    'package.json',
    'package-lock.json',
    '.npmrc',
    'tsconfig.json',
    'scripts',
    'prisma',
    'src'
  ]) {
    t.ok(ignored.includes(`!${name}`) && existsSync(ROOT + name), name)
  }
})

t.test('the settings of the image and of compose.yaml are settings of the service', async (t) => {
  const environment = Object.fromEntries(
    [...dockerfile.matchAll(/\b([A-Z_]{4,})=(\S+)/g)].map(([, name, value]) => [name!, value!])
  )
  t.match(readConfig(environment), { HOST: '0.0.0.0', PORT: 3000, DATABASE_URL: 'file:/data/petstore.db' })
  const config = readConfig(services['petstore']!.environment)
  t.match(config, { RATE_LIMIT_SIGNUP: 10, RATE_LIMIT_FAILED_AUTH: 60, DATABASE_URL: /^postgresql:/ })
})

t.test('compose.yaml migrates before it serves, and nothing in it may write where it need not', async (t) => {
  const { petstore, migrate, postgres } = services as Record<'petstore' | 'migrate' | 'postgres', Service>
  t.match(petstore.depends_on, { migrate: { condition: 'service_completed_successfully' } })
  t.match(migrate.depends_on, { postgres: { condition: 'service_healthy' } })
  t.equal(migrate.command?.join(' '), 'node dist/cli.js migrate', 'as petstore migrate')
  t.ok([petstore, migrate, postgres].every((service) => service.read_only))
  t.match(postgres.image, /^postgres:\d+\.\d+/)
})

t.test('a release runs .ci/run first, and builds the image for both processors', async (t) => {
  const workflow = (name: string): any => parse(readFileSync(`${ROOT}.github/workflows/${name}.yml`, 'utf8'))
  const { check, package: npm, image } = workflow('release').jobs
  t.equal(check.uses, './.github/workflows/ci.yml')
  t.ok('workflow_call' in workflow('ci').on)
  t.match(workflow('ci').jobs.ci.steps.at(-1), { run: 'bash .ci/run' })
  t.match([npm.needs, image.needs], ['check', 'package'])
  t.match(JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).repository.url, npm.if.split("'")[1])
  const { platforms, tags } = image.steps.at(-1).with
  t.equal(platforms, 'linux/amd64,linux/arm64')
  t.match(tags, `ghcr.io/${npm.if.split("'")[1]}:\${{ env.VERSION }}`)
})
