// Only on SQLite: checks options and output; the operations tests check the migrations on both databases.

import { spawnSync } from 'node:child_process'
import { existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { build, CLI, folder, petstore, ROOT } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { startApp } from '../support/app.ts'

t.before(build)

const COMMANDS = [
  ['start'],
  ['worker'],
  ['migrate'],
  ['seed'],
  ['account'],
  ['account', 'create'],
  ['key'],
  ['key', 'create'],
  ['key', 'list'],
  ['key', 'revoke'],
  ['store'],
  ['store', 'export'],
  ['store', 'import'],
  ['studio'],
  ['openapi'],
  ['backup'],
  ['doctor']
]

t.test('--help explains each command and changes nothing', async (t) => {
  const cwd = folder(t)
  const all = await petstore(t, ['--help'], { cwd })
  t.match(all, { code: 0, err: '' })
  for (const command of COMMANDS) {
    const { code, out, err } = await petstore(t, [...command, '--help'], {
      cwd,
      env: { DATABASE_URL: 'mysql://wrong' }
    })
    t.same({ code, err }, { code: 0, err: '' }, command.join(' '))
    t.match(out, new RegExp(`^Usage: petstore ${command.join(' ')} .*\n\n[a-z]`), 'its usage and description')
    t.match(all.out, `  ${command[0]} `, 'and the general help lists it')
  }
  t.same(readdirSync(cwd), [])
})

t.test('--version prints the version of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  t.match(await petstore(t, ['--version']), { code: 0, out: `${version}\n` })
  t.equal(spawnSync(CLI, ['--version'], { encoding: 'utf8' }).stdout, `${version}\n`, 'as a program')
})

t.test('wrong arguments exit with code 2 and one line', async (t) => {
  const table: Array<[args: string[], says: RegExp]> = [
    [['serve'], /unknown command 'serve'/],
    [['star'], /unknown command 'star'.*start/],
    [['start', '--port', '1'], /unknown option '--port'/],
    [['start', 'now'], /too many arguments/],
    [['seed', '--pets', 'many'], /--pets.*whole number from 1/],
    [['seed', '--pets', '0'], /--pets.*whole number from 1/],
    [['seed', '--pets'], /--pets.*argument missing/],
    [['key', 'list'], /--account.*not specified/],
    [['key', 'revoke', 'x', '--account', '1'], /'x'.*whole number/],
    [['account', 'create'], /missing required argument 'name'/],
    [['account', 'create', ''], /^name must have at least 1 character/],
    [['account', 'create', 'x'.repeat(256)], /^name must have at most 255 characters/],
    [['key', 'create', '--account', '1', '--expires-at', 'tomorrow'], /^expiresAt must be an RFC 3339/],
    [['backup'], /missing required argument 'file'/],
    [['studio', '--port', '70000'], /--port.*from 1 to 65535/]
  ]
  const cwd = folder(t)
  for (const [args, says] of table) {
    const { code, out, err } = await petstore(t, args, { cwd })
    t.same({ code, out }, { code: 2, out: '' }, args.join(' '))
    t.match(err, says)
    t.equal(err.trim().split('\n').length, 1, err)
  }
  for (const args of [[], ['key'], ['account']]) {
    t.match(await petstore(t, args, { cwd }), { code: 2, out: '', err: /^Usage: / }, 'no command')
  }
  t.same(readdirSync(cwd), [], 'nothing was created')
})

t.test('invalid settings and a missing database exit with code 1', async (t) => {
  const cwd = folder(t)
  const commands = [
    ['migrate'],
    ['migrate', '--status'],
    ['seed'],
    ['account', 'create', 'x'],
    ['key', 'list', '--account', '1'],
    ['studio'],
    ['openapi'],
    ['backup', 'x.db']
  ]
  for (const args of commands) {
    t.match(
      await petstore(t, args, { cwd, env: { DATABASE_URL: 'mysql://ada:secret@h/d' } }),
      { code: 1, out: '', err: /^These settings are invalid:\n {2}DATABASE_URL must be file:/ },
      args.join(' ')
    )
  }
  for (const args of [['key', 'list', '--account', '1'], ['studio'], ['worker']]) {
    t.match(
      await petstore(t, args, { cwd }),
      { code: 1, out: '', err: /^The database misses .* npx --no petstore migrate\n$/ },
      args.join(' ')
    )
  }
  t.same(readdirSync(cwd), [], 'and none was created')
})

t.test('openapi prints the document of a service with the same settings, and needs no database', async (t) => {
  const cwd = folder(t)
  const settings = { DATABASE_URL: await freshDatabase(t), BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example' }
  const { nobody, port } = await startApp(t, settings)
  const env = {
    ...settings,
    // As in all services of the tests.
    LAB: 'true',
    METRICS_PORT: String(port),
    DATABASE_URL: ''
  }
  const json = await petstore(t, ['openapi'], { cwd, env })
  t.match(json, { code: 0, err: '' })
  t.same(JSON.parse(json.out), (await nobody.get('/v1/openapi.json')).body)
  const yaml = await petstore(t, ['openapi', '--yaml'], {
    cwd,
    env: { ...env, DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nowhere' }
  })
  t.match(yaml, { code: 0, err: '' })
  t.same(parse(yaml.out), JSON.parse(json.out))
  t.same(readdirSync(cwd), [])
})

t.test('a reader that closes the pipe early is not an error', async (t) => {
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', `"${process.execPath}" "${CLI}" openapi | head -n 1; echo "$\{PIPESTATUS[0]}"`],
    { cwd: folder(t), encoding: 'utf8' }
  )
  t.equal(stdout, '{\n0\n')
  t.equal(stderr, '')
})

t.test('an output that cannot be written is a failure with a reason', { skip: !existsSync('/dev/full') }, (t) => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(CLI, ['openapi'], { encoding: 'utf8', stdio: ['ignore', full, 'pipe'] })
  t.match({ status, stderr }, { status: 1, stderr: /^The output cannot be written: ENOSPC: [^\n]+\n$/ })
  t.end()
})
