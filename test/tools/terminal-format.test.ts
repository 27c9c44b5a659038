import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { eventually } from '../support/receiver.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const { scripts } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { scripts: { start: string } }

t.before(() => {
  spawnSync(process.execPath, ['scripts/prepare.mjs'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
})

t.test('in a terminal, the log has readable lines', async (t) => {
  // `script` from util-linux runs a program in a terminal.
  if (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0) {
    t.pass('', { skip: 'there is no `script` to give the service a terminal' })
    return
  }
  const PORT = String(await freePort())
  const env = {
    ...process.env,
    PORT,
    DATABASE_URL: await freshDatabase(t),
    LOG_LEVEL: 'info',
    METRICS_PORT: '',
    NO_COLOR: '1'
  }
  const service = spawn('script', ['-qefc', scripts.start, '/dev/null'], {
    cwd: ROOT,
    env,
    stdio: ['pipe', 'pipe', 'inherit']
  })
  t.teardown(() => { service.kill() })
  let out = ''
  service.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  await eventually(
    async () => (await fetch(`http://127.0.0.1:${PORT}/pets?secret=yes`).catch(() => undefined))?.status === 401,
    120_000
  )
  await eventually(async () => /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: GET \/pets 401 unauthorized [\d.]+ ms\r$/m.test(out))
  t.match(out, /INFO: Server listening at http/)
  t.notMatch(out, /[{}]|secret/, 'neither JSON nor the query')
  service.stdin.write('\x03')
  const [code] = await once(service, 'close')
  t.equal(code, 0, 'Ctrl-C stops the service gracefully')
})
