import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { answers, build, folder, launch, npmSettings, ROOT, until, type Ended } from '../support/cli.ts'
import { database, hasOwnSqlite } from '../support/database.ts'
import { freePort } from '../support/port.ts'

t.before(build)

/** Messages of npm if it cannot reach a registry. */
const OFFLINE = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT)\b/

t.test('the package, installed in an empty folder', { skip: database !== 'sqlite' && 'as on SQLite' }, async (t) => {
  const cwd = folder(t)
  const packed = await npm(t, ROOT, ['pack', '--json', '--pack-destination', cwd])
  t.equal(packed.code, 0, packed.err)
  const [{ filename, files }] = JSON.parse(packed.out) as [{ filename: string, files: Array<{ path: string }> }]

  await t.test('contains only the files that it needs to run', async (t) => {
    const paths = files.map(({ path }) => path)
    for (const path of [
      'dist/cli.js',
      'dist/public-api.js',
      'dist/client/client.js',
      'dist/types/public-api.d.ts',
      'dist/types/client/client.d.ts',
      'prisma.config.ts',
      'README.md',
      'LICENSE'
    ]) {
      t.ok(paths.includes(path), path)
    }
    for (const name of ['sqlite', 'postgresql']) {
      t.ok(
        paths.some((path) => path.startsWith(`prisma/${name}/migrations/`)),
        `${name}'s migrations`
      )
    }
    t.same(
      paths.filter((path) => /\.(map|db|tgz)$/.test(path) ||
        !/^(dist|prisma)\/|^(package\.json|prisma\.config\.ts|README\.md|LICENSE)$/.test(path)),
      []
    )
  })

  writeFileSync(join(cwd, 'package.json'), '{"name": "my-store", "private": true, "type": "module"}')
  const installed = await npm(t, cwd, ['install', '--ignore-scripts', '--no-audit', '--no-fund', `./${filename}`])
  if (installed.code !== 0 && OFFLINE.test(installed.err) && process.env['CI'] !== 'true') {
    t.pass('', { skip: 'no registry can be reached to install from' })
    return
  }
  t.equal(installed.code, 0, installed.err)

  await t.test('names the package that this version of Node needs for SQLite', {
    skip: hasOwnSqlite() && 'this version of Node has SQLite'
  }, async (t) => {
    const { code, err } = await launch(t, 'npx', ['--no', 'petstore', 'start'], { cwd, env: npmSettings() }).ended
    t.equal(code, 1)
    const [, command = ''] = /needs the npm package .* for SQLite\. Run `npm (install [^`]*)`/.exec(err) ?? []
    t.match(command, /^install @photostructure\/sqlite/, err)
    t.match(await npm(t, cwd, [...command.split(' '), '--ignore-scripts', '--no-audit', '--no-fund']), { code: 0 })
  })

  await t.test('installs at most 140 packages and 130 MB', async (t) => {
    const { packages } = JSON.parse(readFileSync(join(cwd, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: object
    }
    const count = Object.keys(packages).length
    const megabytes = sizeOf(join(cwd, 'node_modules')) / 1e6
    t.comment(`${count} packages, ${megabytes.toFixed(1)} MB`)
    t.ok(count > 50 && count <= 140, `${count} packages`)
    t.ok(megabytes > 20 && megabytes <= 130, `${megabytes.toFixed(1)} MB`)
  })

  await t.test('runs with npx --no petstore start', async (t) => {
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const running = launch(t, 'npx', ['--no', 'petstore', 'start'], {
      cwd,
      env: { ...npmSettings(), PORT: String(port) }
    })
    await until(running, async () => await answers(`${origin}/readyz`))
    const { apiKey } = (await (
      await fetch(`${origin}/accounts`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"name": "A store"}'
      })
    ).json()) as { apiKey: string }
    const curl = await launch(t, 'curl', ['-sf', '-H', `Authorization: Bearer ${apiKey}`, `${origin}/pets`], { cwd })
      .ended
    t.match(curl, { code: 0, out: '[]' })
    t.ok(await answers(`${origin}/docs`), 'with its viewer')
  })

  await t.test('has the other commands', async (t) => {
    const env = npmSettings()
    t.match(await launch(t, 'npx', ['--no', 'petstore', 'doctor'], { cwd, env }).ended, {
      code: 0,
      out: /^ok +migrations/m
    })
    t.match(await launch(t, 'npx', ['--no', 'petstore', 'seed', '--pets', '10'], { cwd, env }).ended, {
      code: 0,
      out: /^psk_/
    })
  })

  await t.test('says how to install Prisma Studio', async (t) => {
    const { code, out, err } = await launch(t, 'npx', ['--no', 'petstore', 'studio'], { cwd, env: npmSettings() }).ended
    t.same({ code, out }, { code: 1, out: '' })
    t.match(err, /is not installed.*npm install --save-dev prisma@7\n$/)
  })

  await t.test('exports buildApp and the client with their types', async (t) => {
    writeFileSync(join(cwd, 'own.ts'), `
      import { buildApp, migrate, readConfig, type Config } from 'petstore-lab'
      import { createClient, PetstoreError, type Order } from 'petstore-lab/client'
      const config: Config = readConfig({ DATABASE_URL: 'file:./own.db', LOG_LEVEL: 'silent' })
      await migrate(config.DATABASE_URL)
      const app = await buildApp(config)
      const { statusCode, body } = await app.inject('/readyz')
      const status: number = statusCode
      console.log(status, body)
      const client = createClient({ url: await app.listen({ port: 0 }) })
      const { name }: { name: string } = await client.createAccount({ name: 'Ada' })
      const refused = await client.placeOrder({ petId: 1 }).catch((error: unknown) => error as PetstoreError)
      console.log(name, refused instanceof PetstoreError && refused.code === 'unauthorized')
      await app.close()
      // @ts-expect-error -- an order needs a pet
      export const bad = async (): Promise<Order> => await client.placeOrder({ quantity: 1 })
      // @ts-expect-error -- the settings must be an object
      export const wrong = async () => await buildApp('file:./own.db')
    `)
    const tsc = await launch(
      t,
      process.execPath,
      [
        join(ROOT, 'node_modules/typescript/bin/tsc'),
        'own.ts',
        '--ignoreConfig',
        '--module',
        'nodenext',
        '--target',
        'es2023',
        '--strict',
        '--skipLibCheck',
        '--typeRoots',
        join(ROOT, 'node_modules/@types'),
        '--types',
        'node'
      ],
      { cwd }
    ).ended
    t.same({ code: tsc.code, out: tsc.out }, { code: 0, out: '' })
    t.match(await launch(t, process.execPath, ['own.js'], { cwd }).ended, {
      code: 0,
      out: '200 {"status":"ok"}\nAda true\n',
      err: ''
    })
  })
})

/** Returns the size of all files below a folder, in bytes. */
function sizeOf (folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

async function npm (t: Test, cwd: string, args: string[]): Promise<Ended> {
  return await launch(t, 'npm', args, { cwd, env: npmSettings() }).ended
}
