// Loaded into the service by some programs, before anything of the service: it answers what can only be
// asked inside the process, and fills SQLite's disk. The service itself knows nothing of it.

import { createRequire } from 'node:module'

const open = new Set()

/** Returns a DatabaseSync that also notes its connections. */
const noting = ({ DatabaseSync }) => class extends DatabaseSync {
  constructor (...options) {
    super(...options)
    open.add(this)
  }

  close () {
    open.delete(this)
    super.close()
  }
}

// Both modules from which the service may take its DatabaseSync: that of Node, and the package.
const builtIn = process.getBuiltinModule('node:sqlite')
if (builtIn !== undefined) builtIn.DatabaseSync = noting(builtIn)
const require = createRequire(import.meta.url)
const installed = require('@photostructure/sqlite')
require.cache[require.resolve('@photostructure/sqlite')].exports = { ...installed, DatabaseSync: noting(installed) }

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
  for (const database of open) database.exec(`PRAGMA max_page_count = ${pages}`)
  return open.size
}

// The limit belongs to a connection of the main thread, and open files are counted. On a busy machine COMMIT waits for
// the processor, too, and the service would start the thread for slow disks. Here no COMMIT seems to wait.
const { cpuUsage } = process
process.cpuUsage = (before) => before === undefined ? cpuUsage() : { user: Infinity, system: 0 }

process.on('message', async (question) => { process.send(await answers[question]()) })
process.channel.unref()
