import { away } from './database-outage.ts'
import { connections } from './connections.ts'
import { crash } from './crash.ts'
import { deliveries } from './deliveries.ts'
import { disk } from './disk-faults.ts'
import { durability } from './durability.ts'
import { followers } from './followers.ts'
import { hostile } from './hostile.ts'
import { overload } from './overload.ts'
import { processes } from './processes.ts'
import { shutdown } from './shutdown.ts'
import type { Program } from './harness.ts'

interface Entry {
  program: Program
  /** What holds when it finds nothing. */
  promise: string
  databases: Array<'sqlite' | 'postgresql'>
  /** It has a suite of its own for its short form. */
  wholeOnly?: boolean
}

/** Every program, with the databases that it is for. */
export const programs: Record<string, Entry> = {
  crash: { program: crash, promise: 'a killed service has kept what it acknowledged, once, and nothing by halves', databases: ['sqlite', 'postgresql'] },
  durability: { program: durability, promise: 'what is acknowledged was synced to the disk before', databases: ['sqlite', 'postgresql'] },
  processes: { program: processes, promise: 'three processes on one database are as correct as one', databases: ['postgresql'] },
  away: { program: away, promise: 'a database that is killed, silent or away is survived, and refusals come soon', databases: ['postgresql'] },
  disk: { program: disk, promise: 'a disk that is full, fails or is locked loses nothing, and is recovered from', databases: ['sqlite'] },
  shutdown: { program: shutdown, promise: 'a service that is told to stop answers wholly or not at all, and ends', databases: ['sqlite', 'postgresql'] },
  connections: { program: connections, promise: 'idle, slow, broken and rude connections leave nothing behind and disturb nobody', databases: ['sqlite', 'postgresql'] },
  overload: { program: overload, promise: 'what is too much is refused at once, in bounded memory, and then it is over', databases: ['sqlite', 'postgresql'] },
  followers: { program: followers, promise: 'thousands of followers cost a connection each, and hear of everything once', databases: ['sqlite', 'postgresql'] },
  deliveries: { program: deliveries, promise: 'messages arrive, whoever is killed, fails or is away meanwhile', databases: ['sqlite', 'postgresql'] },
  hostile: { program: hostile, promise: 'hostile input is refused, and answered alike on both databases', databases: ['sqlite', 'postgresql'], wholeOnly: true }
}
