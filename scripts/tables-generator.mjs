// A Prisma generator: writes src/generated/tables.ts, the tables of the models for the service's own statements.

import { writeFileSync } from 'node:fs'
import generatorHelper from '@prisma/generator-helper'

/** The types of columns in the service's statements, by the types of the models. */
const TYPES = { BigInt: 'bigint', Int: 'bigint', String: 'text', Boolean: 'boolean', DateTime: 'time' }

/** What the service's statements return for them. */
const VALUES = { bigint: 'number', text: 'string', boolean: 'boolean', time: 'string' }

/** A field with this comment is written by the database alone. */
const COMPUTED = '@computed'

/** The rows of a model with this comment do not count for the stored bytes of their account. */
const UNCOUNTED = '@uncounted'

generatorHelper.generatorHandler({
  onManifest: () => ({ prettyName: 'tables', defaultOutput: '../../src/generated/tables.ts' }),
  async onGenerate ({ dmmf: { datamodel: { models, enums } }, generator }) {
    const enumsByName = new Map(enums.map((definition) => [definition.name, definition]))
    const text = models.map((model) => tableOf(model, enumsByName)).join('\n')
    writeFileSync(generator.output.value, `// Written by \`npx prisma generate\` from prisma/models.

import { table } from '../database/model-table.ts'

${text}`)
  }
})

function tableOf ({ name, dbName, fields, primaryKey, documentation = '' }, enums) {
  const columns = fields.filter(({ kind, documentation = '' }) =>
    kind !== 'object' && !documentation.includes(COMPUTED))
  const id = primaryKey?.fields.at(-1) ?? columns.find(({ isId }) => isId).name
  const rows = columns.map((field) => `  ${field.name}: ${valueOf(field, enums)}${field.isRequired ? '' : ' | null'}`)
  const specified = columns.map((field) => {
    const { name, dbName, type, kind, default: given } = field
    const typed = kind === 'enum' ? `{ enum: '${enums.get(type).dbName}' }` : `'${TYPES[type]}'`
    const isKnown = given !== undefined && typeof given !== 'object'
    const known = isKnown ? `, default: ${kind === 'scalar' && type !== 'String' ? given : `'${given}'`}` : ''
    return `    ${name}: { name: '${dbName ?? name}', type: ${typed}${known} }`
  })
  return `export interface ${name}Row {
${rows.join('\n')}
}

export const ${camelCase(dbName)} = table<${name}Row>()({
  name: '${dbName}',
  id: '${id}',${documentation.includes(UNCOUNTED) ? '\n  isUncounted: true,' : ''}
  columns: {
${specified.join(',\n')}
  }
})
`
}

function valueOf ({ kind, type }, enums) {
  return kind === 'enum' ? enums.get(type).values.map(({ name }) => `'${name}'`).join(' | ') : VALUES[TYPES[type]]
}

function camelCase (name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())
}
