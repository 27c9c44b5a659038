import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** The imports of each file, types included. Paths are relative to src. */
export type Imports = Map<string, Set<string>>

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))

export function readImports (): { inside: Imports, packages: Imports } {
  const inside: Imports = new Map()
  const packages: Imports = new Map()
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/')).sort()
  for (const file of files) {
    if (!file.endsWith('.ts') || file.startsWith('generated/')) continue
    const names = ts.preProcessFile(readFileSync(SRC + file, 'utf8')).importedFiles.map(({ fileName }) => fileName)
    const relative = names.filter((name) => name.startsWith('.')).map((name) => posix.join(posix.dirname(file), name))
    inside.set(file, new Set(relative))
    packages.set(file, new Set(names.filter((name) => !name.startsWith('.'))))
  }
  return { inside, packages }
}

/** Returns the imports between groups of files. Files without a group are ignored. */
export function between (imports: Imports, groupOf: (file: string) => string | undefined): Imports {
  const groups: Imports = new Map()
  for (const [file, targets] of imports) {
    const from = groupOf(file)
    if (from === undefined) continue
    if (!groups.has(from)) groups.set(from, new Set())
    for (const target of targets) {
      const to = groupOf(target)
      if (to !== undefined && to !== from) groups.get(from)!.add(to)
    }
  }
  return groups
}

/** Finds a cycle of imports. @returns its files, if there is one */
export function circle (imports: Imports): string[] | undefined {
  const done = new Set<string>()
  const path: string[] = []

  function walk (file: string): string[] | undefined {
    const seen = path.indexOf(file)
    if (seen >= 0) return [...path.slice(seen), file]
    if (done.has(file)) return undefined
    path.push(file)
    for (const target of imports.get(file) ?? []) {
      const found = walk(target)
      if (found !== undefined) return found
    }
    path.pop()
    done.add(file)
    return undefined
  }

  for (const file of imports.keys()) {
    const found = walk(file)
    if (found !== undefined) return found
  }
  return undefined
}

/** Formats each import as a line of a Mermaid diagram. */
export function lines (imports: Imports): string[] {
  return [...imports].flatMap(([from, targets]) => [...targets].map((to) => `${from} --> ${to}`)).sort()
}

/** Returns the modules that a file imports for more than their types. */
export function valuesOf (file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(SRC + file, 'utf8'), ts.ScriptTarget.Latest)
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return []
    return statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword ? [] : [statement.moduleSpecifier.text]
  })
}
