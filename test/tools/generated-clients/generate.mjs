// Generates clients from a document, as their users do. A process of its own, because some of the generators write to
// the console and change global state.
//
//   node test/tools/generated-clients/generate.mjs openapi.json test/tools/generated-clients/generated [NAME...]

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@hey-api/openapi-ts'
import { build } from '@kubb/core'
import { pluginClient } from '@kubb/plugin-client'
import { pluginOas } from '@kubb/plugin-oas'
import { pluginTs } from '@kubb/plugin-ts'
import openapiTypescript, { astToString } from 'openapi-typescript'
import { generate } from 'orval'

const [document, output, ...names] = process.argv.slice(2)

async function openapiFetch () {
  mkdirSync(join(output, 'openapi-fetch'), { recursive: true })
  const types = await openapiTypescript(JSON.parse(readFileSync(document, 'utf8')))
  writeFileSync(join(output, 'openapi-fetch/api.ts'), astToString(types))
}

async function heyApi () {
  await generateHeyApi('hey-api', '@hey-api/sdk')
}

async function heyApiZod () {
  await generateHeyApi('hey-api-zod', 'zod', { name: '@hey-api/sdk', validator: { response: 'zod' } })
}

async function generateHeyApi (folder, ...plugins) {
  await createClient({
    input: document,
    output: join(output, folder),
    logs: { level: 'silent' },
    plugins: ['@hey-api/client-fetch', '@hey-api/typescript', ...plugins]
  })
}

async function orval () {
  const files = { 'fetch.ts': 'fetch', 'zod.ts': 'zod' }
  for (const [name, client] of Object.entries(files)) {
    const target = join(output, 'orval', name)
    const baseUrl = { getBaseUrlFromSpecification: true }
    await generate({ input: { target: document }, output: { target, client, mode: 'single', baseUrl } })
  }
}

async function kubb () {
  const { failedPlugins, error } = await build({
    config: {
      root: '.',
      input: { path: document },
      output: { path: join(output, 'kubb'), clean: true },
      plugins: [
        pluginOas({ generators: [] }),
        pluginTs({ output: { path: 'types' } }),
        pluginClient({ output: { path: 'clients' }, client: 'fetch', bundle: true, dataReturnType: 'full' })
      ]
    }
  })
  if (error !== undefined || failedPlugins.size > 0) throw error ?? new Error([...failedPlugins].join(', '))
}

const usual = { 'openapi-fetch': openapiFetch, 'hey-api': heyApi, orval, kubb }
const generators = { ...usual, 'hey-api-zod': heyApiZod }
for (const name of names.length > 0 ? names : Object.keys(usual)) await generators[name]()
