// Only on SQLite: sends signals to a service without a database.

import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/monitoring/logger.ts'
import { exitGracefully } from '../../src/start/graceful-exit.ts'
import { eventually } from '../support/receiver.ts'

// The signals of a process that serves. They are emitted, since real ones would end the process of the test.

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const FAULTS = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const

interface Exiting {
  /** The codes with which the process would have ended. */
  exits: unknown[]
  /** Lets the service close. */
  release: () => void
  /** Resolves with the first code. */
  exited: Promise<unknown>
}

/** Starts a service that closes when it is released. */
function start (t: Test): Exiting {
  const { exit } = process
  const exits: unknown[] = []
  let onExit = (_code: unknown): void => {}
  const exited = new Promise<unknown>((resolve) => { onExit = resolve })
  process.exit = ((code: unknown) => {
    exits.push(code)
    onExit(code)
  }) as typeof exit
  const listeners = [...SIGNALS, 'uncaughtException', 'unhandledRejection', 'beforeExit']
    .map((name) => [name, process.listeners(name as 'SIGINT')] as const)
  t.teardown(() => {
    process.exit = exit
    for (const [name, before] of listeners) {
      for (const listener of process.listeners(name as 'SIGINT')) {
        if (!before.includes(listener)) process.off(name, listener)
      }
    }
  })
  const app = Fastify({ loggerInstance: createLogger({ LOG_LEVEL: 'silent' }) })
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  app.addHook('onClose', async () => { await released })
  // A timer of this time keeps the process of the test.
  exitGracefully(app, 3_000)
  return { exits, release: () => { release() }, exited }
}

t.test('all signals of one Ctrl-C, or of one closed terminal, are one request to stop', async (t) => {
  const { exits, release, exited } = start(t)
  for (const signal of ['SIGINT', 'SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.emit(signal, signal)
  t.same(exits, [], 'the process goes on until the service is closed')
  release()
  t.equal(await exited, 0)
  t.same(exits, [0])
})

t.test('a later signal ends the process at once', async (t) => {
  const { exits, release } = start(t)
  const { now } = performance
  t.teardown(() => { performance.now = now })
  process.emit('SIGINT', 'SIGINT')
  performance.now = () => now.call(performance) + 2_001
  process.emit('SIGINT', 'SIGINT')
  t.same(exits, [1])
  release()
  await eventually(() => exits.length === 2)
})

t.test('signals of a broken process have no listener', async (t) => {
  const before = FAULTS.map((name) => process.listenerCount(name))
  start(t)
  t.same(FAULTS.map((name) => process.listenerCount(name)), before)
  t.ok(SIGNALS.every((name) => process.listenerCount(name) > 0))
})
