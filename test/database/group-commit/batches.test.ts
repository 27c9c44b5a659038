// Only on SQLite: calls a pure function.

import t from 'tap'
import { orderIntoBatches } from '../../../src/database/group-commit/batches.ts'
import type { Command, QueuedCommand } from '../../../src/database/group-commit/command.ts'

const PETS = { name: 'pets', id: 'id' }

/** Returns a command that locks the pets of its input. */
function command (name: string, prefetch?: Command<number[], undefined>['prefetch']): Command<any, any> {
  return {
    name,
    locks: (ids: number[]) => [{ table: PETS, ids, mode: 'update' }],
    ...prefetch === undefined ? {} : { prefetch },
    run: async () => []
  }
}

const rename = command('rename')
const create = command('create')
const order = command('order', () => {})

/** Returns a write that locks pets. */
function write (command: Command<any, any>, ...input: number[]): QueuedCommand {
  return { command, input, context: { account: 1 }, since: 0, resolve () {}, reject () {} }
}

function orderOf (...group: QueuedCommand[]): string[] {
  return orderIntoBatches(group).map(({ command, entries }) =>
    `${command.name} ${entries.flatMap(({ input }) => input as number[]).join(' ')}`.trim())
}

t.test('commands run in order of arrival, each once if no row is shared', async (t) => {
  t.same(orderOf(write(rename, 1), write(create), write(rename, 2)), ['rename 1 2', 'create'])
})

t.test('a command runs again after another that locks the same row', async (t) => {
  t.same(orderOf(write(rename, 1), write(create, 2), write(rename, 2)), ['rename 1', 'create 2', 'rename 2'])
})

t.test('a command whose rows can be read ahead runs first', async (t) => {
  const group = [write(create), write(rename, 1), write(order, 2), write(order, 3)]
  t.same(orderOf(...group), ['order 2 3', 'create', 'rename 1'])
})

t.test('a command that could run first runs after an earlier one that locks the same row', async (t) => {
  const group = [write(create), write(rename, 1), write(order, 2), write(order, 1)]
  t.same(orderOf(...group), ['create', 'rename 1', 'order 2 1'])
})
