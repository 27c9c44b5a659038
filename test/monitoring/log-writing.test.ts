// Only on SQLite: writes a log, without a database.

import { spawnSync } from 'node:child_process'
import { constants, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createLogger } from '../../src/monitoring/logger.ts'
import { folder } from '../start/process.ts'
import { eventually } from '../support/receiver.ts'

t.test('a line that came while the reader paused is written when it goes on, without another line', {
  skip: process.platform === 'win32'
}, async (t) => {
  const path = join(folder(t), 'log')
  spawnSync('mkfifo', [path])
  const reader = await open(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(async () => { await reader.close() })
  const log = createLogger({ LOG_LEVEL: 'info' }, openSync(path, 'w'))
  // The pipe holds 64 KB.
  for (let i = 0; i < 100; i++) log.info('x'.repeat(1_000))
  await sleep(200)
  log.info('the last line')
  await sleep(200)
  let text = ''
  const buffer = Buffer.alloc(65_536)
  await eventually(async () => {
    const { bytesRead } = await reader.read(buffer).catch(() => ({ bytesRead: 0 }))
    text += buffer.toString('utf8', 0, bytesRead)
    return text.includes('the last line')
  }, 10_000, () => `${text.trim().split('\n').length} lines were written`)
  t.equal(text.trim().split('\n').length, 101)
})
