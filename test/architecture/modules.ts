import { readFileSync, writeFileSync } from 'node:fs'
import { between, lines, readImports, type Imports } from './imports.ts'

// The pictures of docs/explanation/architecture.md, as the imports of `src` have them. Run this file to draw them anew:
//
//   npm run modules

const PAGE = new URL('../../docs/explanation/architecture.md', import.meta.url)

/** Files at the root of `src` that every module may import. A picture with them would show little else. */
export const SHARED_FILES = new Set(['config.ts', 'errors.ts', 'folders.ts', 'operational-error.ts'])

/** The one module without a folder: it assembles the service. */
const APP_FILES = new Set(['app.ts', 'create-store.ts', 'public-api.ts', 'resources.ts'])

export interface Pictures {
  modules: Imports
  resources: Imports
}

/** Returns the folders of the resources: those that have routes and schemas. */
export function resourceFolders (files: Iterable<string>): Set<string> {
  const all = new Set(files)
  const folders = [...all].filter((file) => file.endsWith('/routes.ts')).map((file) => file.split('/')[0]!)
  return new Set(folders.filter((folder) => all.has(`${folder}/schemas.ts`)))
}

/** Returns the module of a file of `src`: its folder, `resources` for each resource, `app` or `cli` at the root. */
function moduleOf (file: string, resources: Set<string>): string | undefined {
  const [folder = '', ...rest] = file.split('/')
  if (folder === 'generated' || SHARED_FILES.has(file)) return undefined
  if (rest.length === 0) return APP_FILES.has(file) ? 'app' : file.replace(/\.ts$/, '')
  return resources.has(folder) ? 'resources' : folder
}

/** Returns the arrows of both pictures. */
export function drawPictures ({ inside }: { inside: Imports }): Pictures {
  const resources = resourceFolders(inside.keys())
  return {
    modules: between(inside, (file) => moduleOf(file, resources)),
    resources: between(inside, (file) => {
      const [folder = ''] = file.split('/')
      return resources.has(folder) ? folder : undefined
    })
  }
}

if (process.argv[1] === import.meta.filename) {
  const { modules, resources } = drawPictures(readImports())
  const pictures = [modules, resources].map(
    (imports) =>
      `\`\`\`mermaid\nflowchart TD\n${lines(imports)
        .map((line) => `  ${line}\n`)
        .join('')}\`\`\``
  )
  writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(/```mermaid\n[^`]*```/g, (old) => pictures.shift() ?? old))
}
