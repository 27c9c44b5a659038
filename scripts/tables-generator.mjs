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

/** When an account is deleted, other processes are told the ids of its rows of a model with this comment. */
const ANNOUNCED = '@announced'

generatorHelper.generatorHandler({
  onManifest: () => ({ prettyName: 'tables', defaultOutput: '../../src/generated/tables.ts' }),
  async onGenerate ({ dmmf: { datamodel: { models, enums, indexes } }, generator }) {
    const enumsByName = new Map(enums.map((definition) => [definition.name, definition]))
    const text = models.map((model) => tableOf(model, enumsByName, indexes, models)).join('\n')
    writeFileSync(generator.output.value, `// Written by \`npx prisma generate\` from prisma/models.

import type { Table } from '../database/table.ts'

${text}`)
  }
})

function tableOf ({ name: model, dbName, fields, primaryKey, documentation = '' }, enums, indexes, models) {
  const columns = fields.filter(({ kind, documentation = '' }) =>
    kind !== 'object' && !documentation.includes(COMPUTED))
  const parents = new Map(fields.flatMap(({ relationFromFields = [], type }) =>
    relationFromFields.map((name) => [name, models.find(({ name }) => name === type).dbName])))
  const key = primaryKey?.fields ?? [columns.find(({ isId }) => isId).name]
  const rows = columns.map((field) => `  ${field.name}: ${valueOf(field, enums)}${field.isRequired ? '' : ' | null'}`)
  const specified = columns.map((field) => {
    const { name, dbName, type, kind, default: given } = field
    const typed = kind === 'enum' ? `{ enum: '${enums.get(type).dbName}' }` : `'${TYPES[type]}'`
    const isKnown = given !== undefined && typeof given !== 'object'
    const known = isKnown ? `, default: ${kind === 'scalar' && type !== 'String' ? given : `'${given}'`}` : ''
    const nullable = field.isRequired ? '' : ', isNullable: true'
    // Each row of an account refers to it.
    const parent = name === 'accountId' ? undefined : parents.get(name)
    const references = parent === undefined ? '' : `, references: '${parent}'`
    return `    ${name}: { name: '${dbName ?? name}', type: ${typed}${nullable}${known}${references} }`
  })
  const lists = indexes.filter((index) => index.model === model && index.type === 'normal')
    .map((index) => `    [${index.fields.map(({ name }) => `'${name}'`).join(', ')}]`)
  return `export interface ${model}Row {
${rows.join('\n')}
}

export const ${camelCase(dbName)}: Table<${model}Row> = {
  name: '${dbName}',
  id: '${key.at(-1)}',
  order: '${key[1] ?? key[0]}',${documentation.includes(UNCOUNTED) ? '\n  isUncounted: true,' : ''}${
    documentation.includes(ANNOUNCED) ? '\n  isAnnounced: true,' : ''}
  columns: {
${specified.join(',\n')}
  },
  indexes: [${lists.length === 0 ? '' : `\n${lists.join(',\n')}\n  `}]
}
`
}

function valueOf ({ kind, type }, enums) {
  return kind === 'enum' ? enums.get(type).values.map(({ name }) => `'${name}'`).join(' | ') : VALUES[TYPES[type]]
}

function camelCase (name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())
}
