import { REAL_TIME, timeText, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import type { Step, Steps } from '../steps.ts'
import type {
  BeforeCommit, Changes, CommandSuccess, FastPath, FastPathEvents, QueuedCommand
} from './command.ts'

export interface FastPathResult {
  success: CommandSuccess<unknown>
  changes: Changes
}

/**
 * Runs a write by the fast path of its command, in a transaction of its own.
 *
 * @returns `undefined` if `run` must decide; then nothing was written
 */
export async function runFastPath (
  database: Database, { command, input, context }: QueuedCommand, beforeCommit: readonly BeforeCommit[],
  clocks: AccountClocks = REAL_TIME
): Promise<FastPathResult | undefined> {
  const { fastPath } = command
  const { account, idempotency, rejection } = context
  if (fastPath === undefined || account === null || idempotency !== undefined || rejection !== undefined) {
    return undefined
  }
  const [{ inFastPath: events } = {}, ...others] = beforeCommit
  if (events?.isPossible(account) !== true || others.length > 0) return undefined
  const now = timeText(clocks.now(account))
  const members = fastPath.inputOf(input, now)
  if (members === undefined) return undefined
  const steps = stepsOf(database.dialect, command.name, fastPath, events)
  const made = await database.commitSteps(
    steps, { ...members, account, now, ahead: clocks.offsetOf(account) / 1000 }
  ) as { id: number | string } | undefined
  if (made === undefined) return undefined
  return { success: fastPath.resultOf(input, made.id, now), changes: events.changesOf(account, fastPath.event) }
}

/** The steps by database and command. */
const known = new Map<string, Steps>()

function stepsOf (
  dialect: Dialect, command: string, fastPath: FastPath<unknown, unknown>, events: FastPathEvents
): Steps {
  const key = `${dialect.name} ${command}`
  let steps = known.get(key)
  if (steps === undefined) {
    steps = buildSteps(dialect, fastPath, events)
    known.set(key, steps)
  }
  return steps
}

function buildSteps (
  dialect: Dialect, { inputs, steps, event }: FastPath<unknown, unknown>, events: FastPathEvents
): Steps {
  const writer: Step = {
    name: 'writer',
    sql: `
      SELECT a.id FROM accounts a
      WHERE a.id = @account AND a.deleted_at IS NULL AND a.clock_offset_seconds = @ahead AND ${events.condition}`,
    columns: { id: 'bigint' },
    lock: 'key share'
  }
  return {
    inputs: { account: 'bigint', now: 'text', ahead: 'bigint', ...inputs },
    steps: [writer, ...steps(dialect), ...events.steps(dialect, event)],
    result: 'made'
  }
}
