import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { createMessage } from '../../src/messages/commands.ts'
import { startApp } from '../support/app.ts'
import { DELIVERING } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'

// Prints rates and asserts none, because other processes may keep the machine busy.

const MESSAGES = 500

const RECEIVER = `require('node:http')
  .createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()))
  .listen(0, '127.0.0.1', function () { console.log(this.address().port) })
  process.stdin.resume().on('end', () => process.exit())`

for (const webhooks of [0, 1, 3]) {
  t.test(`${MESSAGES} messages to ${webhooks} webhooks`, { timeout: 300_000 }, async (t) => {
    const before = await startApp(t, { WEBHOOKS_ALLOW_PRIVATE: 'true' })
    const ada = await before.openAccount()
    const receiver = spawn(process.execPath, ['-e', RECEIVER], { stdio: ['pipe', 'pipe', 'ignore'] })
    t.teardown(() => { receiver.kill() })
    const [port] = await once(receiver.stdout.setEncoding('utf8'), 'data') as [string]
    const account = ada.account!
    for (let i = 0; i < webhooks; i++) {
      await ada.post('/webhooks', { url: `http://127.0.0.1:${port.trim()}/${i}`, events: ['message.created'] })
    }
    await Promise.all(Array.from({ length: MESSAGES }, async (_, i) =>
      await before.app.commit(createMessage, { account, message: { message: `${i}` } }, { account })))

    const { app } = await startApp(t, { ...DELIVERING, DATABASE_URL: before.config.DATABASE_URL })
    const startedAt = Date.now()
    const { user, system } = process.cpuUsage()
    const { message } = before.app.database.reader
    await eventually(async () => await message.count({ where: { status: 'delivered' } }) === MESSAGES, 280_000)
    const seconds = (Date.now() - startedAt) / 1_000
    const used = process.cpuUsage({ user, system })
    const core = (used.user + used.system) / 1_000_000
    const each = webhooks || 1
    const rates = [Math.round(MESSAGES * each / seconds), Math.round(MESSAGES * each / core)]
    t.comment(`${rates[0]} a second, ${rates[1]} for each second of one core`)
    t.equal(await app.database.reader.delivery.count({ where: { state: 'delivered' } }), MESSAGES * webhooks)
    receiver.stdin.end()
  })
}
