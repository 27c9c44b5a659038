// Only on SQLite: runs commands and samples of the pages over HTTP.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FILES = `${ROOT}docs/how-to/deployment/`

interface Dashboard {
  panels: Array<{ title: string, targets: Array<{ expr: string }> }>
}

/** Functions, operators and labels of the query language that look like the name of a metric. */
const WORDS = /^(sum|max|by|rate|topk|histogram_quantile|le|job|instance)$/

t.test('each query of the Grafana dashboard names metrics and labels that exist', async (t) => {
  const page = readFileSync(`${ROOT}docs/reference/metrics.md`, 'utf8')
  const metrics = new Map([...page.matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\|/gm)].map(([, name, type, labels]) =>
    [name!, { type: type!, labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!) }]))
  t.ok(metrics.size > 20)
  const { panels } = JSON.parse(readFileSync(`${FILES}grafana-dashboard.json`, 'utf8')) as Dashboard
  t.ok(panels.length > 8)
  const used = new Set<string>()
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      const labels = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/, */))
      const names = [...expr.replace(/"[^"]*"|\[[^\]]*\]/g, '').matchAll(/\b[a-z]\w+/g)].map(([name]) => name)
        .filter((name) => !WORDS.test(name) && !labels.includes(name))
      t.ok(names.length > 0, `${title}: ${expr} names a metric`)
      for (const name of names) {
        const histogram = name.replace(/_(bucket|sum|count)$/, '')
        const metric = metrics.get(name) ?? metrics.get(histogram)
        t.ok(metric !== undefined, `${title}: ${name} is a metric`)
        t.equal(metric?.type === 'histogram', name !== histogram, `${title}: ${name} fits its type`)
        for (const label of labels) t.ok(label === 'le' || metric?.labels.includes(label), `${name} has ${label}`)
        used.add(metrics.has(name) ? name : histogram)
      }
    }
  }
  for (const name of metrics.keys()) if (name.startsWith('petstore_')) t.ok(used.has(name), `${name} is shown`)
})

t.test('systemd accepts the unit, whose settings are settings of the service', async (t) => {
  const unit = readFileSync(`${FILES}petstore.service`, 'utf8')
  const assignments = [...unit.matchAll(/\b([A-Z_]{4,})=(\S+)/g)]
  const settings = Object.fromEntries(assignments.map(([, name, value]) => [name!, value!]))
  const config = readConfig(settings)
  t.match(config, { HOST: '127.0.0.1', PORT: 3000, DATABASE_URL: 'file:/var/lib/petstore/petstore.db' })
  t.ok(Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1]) * 1_000 > config.SHUTDOWN_GRACE_MS)
  const file = join(folder(t), 'petstore.service')
  writeFileSync(file, unit.replaceAll('/opt/petstore', ROOT.replace(/\/$/, '')))
  check(t, 'systemd-analyze', ['verify', '--man=no', file])
})

t.test('Caddy accepts its file', async (t) => {
  check(t, 'caddy', ['validate', '--adapter', 'caddyfile', '--config', `${FILES}Caddyfile`])
})

/** Runs a program that checks a file. Skips the check where the program is not installed. */
function check (t: Test, program: string, args: string[]): void {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (error !== undefined) t.pass('', { skip: `${program} is not installed` })
  else t.equal(status, 0, `${stdout}${stderr}`)
}

function folder (t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'petstore-deployment-'))
  t.teardown(() => { rmSync(path, { recursive: true, force: true }) })
  return path
}
