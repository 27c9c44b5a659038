import { readFileSync } from 'node:fs'
import t from 'tap'
import { between, circle, lines, readImports, valuesOf } from './imports.ts'

const { inside, packages } = readImports()
const files = [...inside.keys()]
const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')
const [parts = '', resources = ''] = [...page.matchAll(/```mermaid\n([^`]*)```/g)].map(([, text]) => text!)

/** Files that are the same everywhere: a picture with them would show little else. */
const EVERYWHERE = 'words'

/** The parts as the page lists them: a row for each, with its files in code marks. */
const patterns = new Map([...page.matchAll(/^\| (\w+) \| (`[^|]*`) \|/gm)].map(([, name, cell]) =>
  [name!, [...cell!.matchAll(/`([^`]+)`/g)].map(([, glob]) => pattern(glob!))]))

function pattern (glob: string): RegExp {
  return new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('*', '[^/]+')}$`)
}

function partsOf (file: string): string[] {
  return [...patterns].filter(([, globs]) => globs.some((glob) => glob.test(file))).map(([name]) => name)
}

function drawn (picture: string): string[] {
  return picture.split('\n').map((line) => line.trim()).filter((line) => line.includes('-->')).sort()
}

t.test('no imports go in a circle, those of types included', async (t) => {
  t.ok(files.length > 50)
  t.equal(circle(inside)?.join(' → '), undefined)
})

t.test('every file belongs to one part of the architecture page', async (t) => {
  t.ok(patterns.size > 5)
  for (const file of files) t.equal(partsOf(file).length, 1, `src/${file} is in ${partsOf(file).join(' and ') || 'no part'} of docs/architecture.md`)
  const idle = [...patterns.values()].flat().filter((glob) => !files.some((file) => glob.test(file)))
  t.strictSame(idle.map(String), [], 'and the page lists nothing that is not there')
})

t.test('the picture of the parts has the arrows that the imports have', async (t) => {
  const imports = between(inside, (file) => partsOf(file).find((part) => part !== EVERYWHERE))
  t.strictSame(drawn(parts), lines(imports))
  t.equal(circle(imports)?.join(' → '), undefined)
})

t.test('the picture of the resources has the arrows that the imports have', async (t) => {
  const hasRoutes = (folder: string): boolean => files.includes(`${folder}/routes.ts`)
  const folders = new Set(files.filter((file) => file.endsWith('/schemas.ts')).map((file) => file.split('/')[0]!).filter(hasRoutes))
  const imports = between(inside, (file) => {
    const [folder = ''] = file.split('/')
    return folders.has(folder) ? folder : undefined
  })
  t.ok(folders.size >= 8)
  t.strictSame(drawn(resources), lines(imports))
  t.equal(circle(imports)?.join(' → '), undefined)
})

t.test('what all know knows nobody', async (t) => {
  const words = files.filter((file) => partsOf(file).includes(EVERYWHERE))
  for (const file of words) t.strictSame([...inside.get(file)!].filter((target) => !words.includes(target)), [], file)
})

t.test('rules import nothing of ours but types, and nothing that does input or output', async (t) => {
  const rules = files.filter((file) => file.endsWith('/rules.ts'))
  t.ok(rules.length >= 3)
  for (const file of rules) t.strictSame(valuesOf(file).filter((name) => name !== 'ipaddr.js'), [], file)
})

t.test('routes are known to the app alone, and the app to what runs', async (t) => {
  const importers = (wanted: RegExp): string[] => files.filter((file) => [...inside.get(file)!].some((target) => wanted.test(target)))
  t.strictSame(importers(/\/routes\.ts$/), ['app.ts'])
  for (const file of importers(/^app\.ts$/)) t.strictSame(partsOf(file), ['process'], file)
})

t.test('Prisma is known to the database alone', async (t) => {
  const knows = files.filter((file) => [...packages.get(file)!].some((name) => name.startsWith('@prisma/')) || [...inside.get(file)!].some((target) => target.startsWith('generated/')))
  t.ok(knows.length > 0)
  for (const file of knows) t.match(file, /^database\//)
})

t.test('no file has a name that says nothing', async (t) => {
  for (const file of files) t.notMatch(file, /(^|\/)(index|utils?|helpers?|types|common|misc)\.ts$/)
})
