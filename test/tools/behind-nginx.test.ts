// Two processes need PostgreSQL.
import './on-postgresql.ts'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp } from '../support/app.ts'
import { ROOT } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'

/** An event that nginx does not pass on within this time is buffered. */
const PATIENCE_MS = 60_000

const CONFIGURATION = join(ROOT, 'docs/how-to/deployment/nginx.conf')

/** The folder of nginx is in the PATH of root only. */
const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }

/** Tells why the test cannot run, or false. `.ci/run` installs nginx. */
function reasonToSkip (): string | false {
  const isInstalled = spawnSync('nginx', ['-v'], { env }).status === 0
  if (process.env['CI'] === 'true' || isInstalled) return false
  return 'nginx is not installed (Debian: apt-get install nginx-light)'
}

/** Starts nginx with the example of the documentation, in front of services at these ports. @returns its address */
async function startNginx (t: Test, ports: number[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-nginx-'))
  const port = await freePort()
  const example = readFileSync(CONFIGURATION, 'utf8')
    .replace('listen 80;', `listen 127.0.0.1:${port};`).replace(':3001', `:${ports[0]}`).replace(':3002', `:${ports[1]}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  const file = join(folder, 'nginx.conf')
  // As root, its workers would be another user, who cannot reach the temporary folder of the tests.
  writeFileSync(file, `${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; pid ${folder}/pid; error_log stderr; events {}
    http { access_log off; ${paths.join(' ')} ${example} }`)
  const checked = spawnSync('nginx', ['-t', '-e', 'stderr', '-c', file], { env, encoding: 'utf8' })
  t.equal(checked.status, 0, `nginx accepts the file: ${checked.stderr}`)
  const nginx = spawn('nginx', ['-e', 'stderr', '-c', file], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(async () => {
    nginx.kill('SIGTERM')
    if (nginx.exitCode === null) await once(nginx, 'close')
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  while (!await fetch(`${url}/readyz`).then(({ ok }) => ok, () => false)) {
    if (nginx.exitCode !== null) throw new Error('nginx has ended')
    await sleep(50)
  }
  return url
}

t.test('nginx in front of two processes', { skip: reasonToSkip() }, async (t) => {
  const settings = { DATABASE_URL: await freshDatabase(t), TRUST_PROXY: '127.0.0.1' }
  const services = [await startApp(t, settings), await startApp(t, settings)]
  const addresses = services.map(({ app }) => {
    const seen: string[] = []
    app.server.on('request', ({ headers }) => { seen.push(String(headers['x-forwarded-for'])) })
    return seen
  })
  const url = await startNginx(t, services.map(({ port }) => port))
  const { key } = await services[0]!.openAccount()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const create = async (message: string): Promise<Response> =>
    await fetch(`${url}/messages`, { method: 'POST', headers, body: JSON.stringify({ message }) })

  await t.test('balances requests and replaces X-Forwarded-For', async (t) => {
    for (let i = 0; i < 6; i++) {
      const answer = await fetch(`${url}/pets`, { headers: { ...headers, 'x-forwarded-for': '203.0.113.7' } })
      t.equal(answer.status, 200)
    }
    for (const seen of addresses) {
      t.ok(seen.length >= 2, 'each process has its share')
      t.same(seen.filter((address) => address !== '127.0.0.1' && address !== 'undefined'), [])
    }
  })

  await t.test('passes on each event at once, whichever process wrote it', async (t) => {
    const answer = await fetch(`${url}/events`, { headers: { ...headers, accept: 'text/event-stream' } })
    t.equal(answer.status, 200)
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    const late = setTimeout(() => { void reader.cancel() }, PATIENCE_MS)
    let text = ''
    for (const message of ['first', 'second', 'third', 'fourth']) {
      t.equal((await create(message)).status, 201)
      // The stream stays open, so a buffered event would not arrive.
      for (let done = false; !done && !text.includes(`"${message}"`);) {
        const chunk = await reader.read()
        done = chunk.done
        text += chunk.value ?? ''
      }
      t.match(text, `"${message}"`)
    }
    clearTimeout(late)
    await reader.cancel()
  })

  await t.test('a process that stops costs no request', async (t) => {
    const stopping = services[1]!.app.close()
    const answers = await Promise.all(Array.from({ length: 20 }, async () => await fetch(`${url}/pets`, { headers })))
    t.same(answers.map(({ status }) => status).filter((status) => status !== 200), [])
    await stopping
    t.equal((await fetch(`${url}/pets`, { headers })).status, 200)
  })
})
