import pg from 'pg'
import type { Test } from 'tap'

/** A statement that PostgreSQL ran, with what it took. */
export interface ExplainedStatement {
  sql: string
  /** 8 KB pages that it read, from the cache or not. A page counts as often as the statement reads it. */
  pages: number
  /** Rows that it returned. */
  rows: number
  /** Rows that it changed. */
  changes: number
}

interface PlanNode {
  'Node Type': string
  'Parent Relationship'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: PlanNode[]
}

/** Settings of the extension auto_explain, which sends the plan of each statement to its client as a notice. */
const SETTINGS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_level': 'notice',
  'auto_explain.log_format': 'json',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_buffers': 'on',
  // Those of triggers and foreign keys.
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_min_duration': '0'
}

/** Makes later connections to a database report their statements. */
export async function reportStatements (url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const name = new URL(url).pathname.slice(1)
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await client.query(`ALTER DATABASE ${name} SET ${setting} = '${value}'`)
  }
  await client.end()
}

/** Connects to a database whose connections report their statements, but reports none of this one. */
export async function connectUnreported (t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(async () => { await client.end() })
  await client.query("SET auto_explain.log_min_duration = '-1'")
  return client
}

/** Returns a function that collects what all connections of this process report while an action runs. */
export function collectStatements (t: Test): (action: () => Promise<unknown>) => Promise<ExplainedStatement[]> {
  let collected: ExplainedStatement[] = []
  const { connect } = pg.Client.prototype
  const patched = function (this: pg.Client, ...args: Parameters<typeof connect>) {
    this.on('notice', ({ message = '' }) => {
      if (message.startsWith('duration: ')) collected.push(parse(message))
    })
    return connect.apply(this, args)
  }
  pg.Client.prototype.connect = patched as unknown as typeof connect
  t.teardown(() => { pg.Client.prototype.connect = connect })
  return async (action) => {
    collected = []
    await action()
    return collected
  }
}

function parse (message: string): ExplainedStatement {
  const { 'Query Text': sql, Plan: plan } =
    JSON.parse(message.slice(message.indexOf('{'))) as { 'Query Text': string, Plan: PlanNode }
  const pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  return { sql, pages, rows: plan['Actual Rows'], changes: changesOf(plan) }
}

/** Counts the rows that a plan changes anywhere in it. */
function changesOf ({ 'Node Type': type, Plans: plans = [] }: PlanNode): number {
  const own = type === 'ModifyTable' ? plans.find((plan) => plan['Parent Relationship'] === 'Outer') : undefined
  return (own === undefined ? 0 : own['Actual Rows'] * own['Actual Loops']) +
    plans.reduce((sum, plan) => sum + changesOf(plan), 0)
}
