import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { folder, launch, ROOT, until } from '../support/cli.ts'
import { freePort } from '../support/port.ts'

// Commands of npm, Prisma and tap, in a copy of the sources with the packages of this clone.

/** Copies what the commands read. The generated files are written again, in the copy. */
function copySources (t: Test): string {
  const copy = folder(t)
  // The copies keep their dates: otherwise npm would install again, through the link.
  for (const path of [
    'package.json', 'package-lock.json', '.taprc', 'tsconfig.json', 'prisma.config.ts', 'prisma', 'scripts', 'src',
    'LICENSE', 'test/pets', 'test/support'
  ]) {
    mkdirSync(dirname(join(copy, path)), { recursive: true })
    cpSync(join(ROOT, path), join(copy, path), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

t.test('the usual commands work in a clone', async (t) => {
  const cwd = copySources(t)
  const run = async (...command: string[]) => await launch(t, 'npx', ['--no', ...command], { cwd }).ended

  await t.test('npx prisma validate, format and generate', async (t) => {
    const file = join(cwd, 'prisma/models/pets.prisma')
    const formatted = readFileSync(file, 'utf8')
    writeFileSync(file, formatted.replace(/^ {2}name +String/m, '  name String'))
    t.not(readFileSync(file, 'utf8'), formatted)
    for (const [command, output] of [
      ['validate', /The schemas at .* are valid/], ['format', /Formatted /], ['generate', /Generated Prisma Client /]
    ] as const) {
      const { code, out, err } = await run('prisma', command)
      t.equal(code, 0, err)
      t.match(out, output)
    }
    t.equal(readFileSync(file, 'utf8'), formatted)
    t.ok(existsSync(join(cwd, 'src/generated/sqlite/client.ts')))
  })

  await t.test('npx tap runs one test file', async (t) => {
    const { code, out } = await run('tap', '--reporter=tap', 'test/pets/rules.test.ts')
    t.equal(code, 0, out)
    t.match(out, /^ok 1 - test\/pets\/rules\.test\.ts/m)
  })

  await t.test('npm run dev restarts the service on a change', async (t) => {
    const port = await freePort()
    const env = { PORT: String(port), DATABASE_URL: 'file:./dev.db', LOG_LEVEL: 'warn' }
    const running = launch(t, 'npm', ['run', 'dev'], { cwd, env })
    const message = async (): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${port}/no-such-path`).catch(() => undefined)
      return answer === undefined ? '' : (await answer.json() as { message: string }).message
    }
    await until(running, async () => /^No route/.test(await message()))
    const file = join(cwd, 'src/errors.ts')
    writeFileSync(file, readFileSync(file, 'utf8').replace('No route matches', 'Not one route matches'))
    await until(running, async () => /^Not one route/.test(await message()))
    await running.stop()
    t.equal(await message(), '', 'and ends with npm')
  })
})
