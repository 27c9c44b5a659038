import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** A table as the code can name it: in SQL, in an identifier, or as the accessor of a Prisma Client. */
export interface TableName {
  /** The name in SQL, such as `inventory_items`. */
  table: string
  /** The words of the name, such as `inventory` and `items`. */
  words: string[]
  /** The accessor of the model, such as `inventoryItem`. */
  accessor: string
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Words that only SQL has in this order or case. */
const SQL = /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|FROM|JOIN|LOCK TABLE)\b/

/** The methods of a Prisma model that the service can call. */
const MODEL_METHODS = /^(create|update|delete|find|upsert|count|aggregate|groupBy)/

/** Returns the tables of all Prisma models. */
export function readTables (): TableName[] {
  const folder = `${ROOT}prisma/models`
  const files = readdirSync(folder).map((name) => `${folder}/${name}`)
  return files
    .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/^model (\w+) \{([\s\S]*?)^\}/gm)])
    .map(([, model, body]) => {
      const table = /@@map\("(\w+)"\)/.exec(body!)?.[1] ?? model!
      return { table, words: table.split('_'), accessor: model!.charAt(0).toLowerCase() + model!.slice(1) }
    })
}

/**
 * Returns the tables that a file of `src` names in its SQL or its identifiers. Comments, module names and texts that
 * are no SQL do not count.
 */
export function tablesNamed (file: string, tables: TableName[]): string[] {
  const found = new Set<string>()
  const source = ts.createSourceFile(file, readFileSync(`${ROOT}src/${file}`, 'utf8'), ts.ScriptTarget.Latest, true)

  function visit (node: ts.Node): void {
    if (isModuleName(node)) return
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) addFrom(wordsOf(node.text))
    else if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      addFromText(node)
    }
    if (ts.isPropertyAccessExpression(node) && MODEL_METHODS.test(node.name.text)) addAccessor(node.expression)
    ts.forEachChild(node, visit)
  }

  function addFrom (words: string[]): void {
    for (const { table, words: wanted } of tables) {
      if (words.some((_, i) => wanted.every((word, j) => words[i + j] === word))) found.add(table)
    }
  }

  function addFromText (node: ts.LiteralLikeNode): void {
    const isSql = SQL.test(wholeText(node))
    for (const { table } of tables) {
      if (node.text === table || (isSql && new RegExp(`\\b${table}\\b`).test(node.text))) found.add(table)
    }
  }

  function addAccessor (receiver: ts.Expression): void {
    if (!ts.isPropertyAccessExpression(receiver)) return
    for (const { table, accessor } of tables) if (receiver.name.text === accessor) found.add(table)
  }

  visit(source)
  return [...found].sort()
}

function isModuleName (node: ts.Node): boolean {
  return (
    ts.isStringLiteral(node) &&
    (ts.isImportDeclaration(node.parent) ||
      ts.isExportDeclaration(node.parent) ||
      ts.isExternalModuleReference(node.parent) ||
      (ts.isCallExpression(node.parent) && node.parent.expression.kind === ts.SyntaxKind.ImportKeyword))
  )
}

/** Returns the text of a literal, or of the whole template that it is a part of. */
function wholeText (node: ts.LiteralLikeNode): string {
  const template = ts.isTemplateSpan(node.parent) ? node.parent.parent : node.parent
  return ts.isTemplateExpression(template) ? template.getText() : node.text
}

/** Splits `changedWebhooks`, `LOCKED_PETS` and `pets_by_id` into words in small letters. */
function wordsOf (identifier: string): string[] {
  return identifier.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase().split('_')
}
