import { away } from './away.ts'
import { connections } from './connections.ts'
import { crash } from './crash.ts'
import { disk } from './disk.ts'
import { durability } from './durability.ts'
import { processes } from './processes.ts'
import { shutdown } from './shutdown.ts'
import type { Program } from './stage.ts'

/** Every program, with the databases that it is for. */
export const programs: Record<string, { program: Program, databases: Array<'sqlite' | 'postgresql'> }> = {
  crash: { program: crash, databases: ['sqlite', 'postgresql'] },
  durability: { program: durability, databases: ['sqlite', 'postgresql'] },
  processes: { program: processes, databases: ['postgresql'] },
  away: { program: away, databases: ['postgresql'] },
  disk: { program: disk, databases: ['sqlite'] },
  shutdown: { program: shutdown, databases: ['sqlite', 'postgresql'] },
  connections: { program: connections, databases: ['sqlite', 'postgresql'] }
}
