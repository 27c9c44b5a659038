// Loaded into the service by some programs, before anything of the service: it answers what can only be
// asked inside the process, and fills SQLite's disk. The service itself knows nothing of it.

import { createRequire } from 'node:module'

const Database = createRequire(import.meta.url)('better-sqlite3')
const open = new Set()
const { exec } = Database.prototype
Database.prototype.exec = function (sql) {
  open.add(this)
  return exec.call(this, sql)
}

const answers = {
  /** After a forced collection, twice: what finalizers let go is collected by the second. */
  async memory () {
    for (let i = 0; i < 4; i++) {
      globalThis.gc()
      await new Promise((resolve) => { setTimeout(resolve, 20) })
    }
    return { heap: process.memoryUsage().heapUsed, handles: process.getActiveResourcesInfo().length }
  },
  /** No page more: SQLITE_FULL, as on a full disk. The limit belongs to a connection, so it is set from in here. */
  fill () {
    return { connections: limit(1) }
  },
  empty () {
    return { connections: limit(2 ** 31) }
  }
}

/** A limit below what is there is taken for what is there. */
function limit (pages) {
  const databases = [...open].filter((database) => database.open)
  for (const database of databases) database.pragma(`max_page_count = ${pages}`)
  return databases.length
}

// The limit belongs to a connection of the main thread, and open files are counted. On a busy machine COMMIT waits for
// the processor, too, and the service would start the thread for slow disks. Here no COMMIT seems to wait.
const { cpuUsage } = process
process.cpuUsage = (before) => before === undefined ? cpuUsage() : { user: Infinity, system: 0 }

process.on('message', async (question) => { process.send(await answers[question]()) })
process.channel.unref()
