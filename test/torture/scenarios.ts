import { databaseOutage } from './database-outage.ts'
import { connections } from './connections.ts'
import { crash } from './crash.ts'
import { deliveries } from './deliveries.ts'
import { diskFaults } from './disk-faults.ts'
import { durability } from './durability.ts'
import { failover } from './failover.ts'
import { followers } from './followers.ts'
import { fuzz } from './fuzz.ts'
import { histories } from './histories/histories.ts'
import { neighbours } from './neighbours.ts'
import { overload } from './overload.ts'
import { pausedProcess } from './paused-process.ts'
import { processes } from './processes.ts'
import { shutdown } from './shutdown.ts'
import { storm } from './storm.ts'
import type { Scenario } from './harness.ts'

interface Entry {
  scenario: Scenario
  /** What the service guarantees, and the scenario checks. */
  promise: string
  databases: Array<'sqlite' | 'postgresql'>
  /** The databases in `npm test`, if they are fewer: other tests run the same statements on both. */
  quickDatabases?: Array<'sqlite' | 'postgresql'>
  /** Set when another test of the suite is its short form. */
  fullFormOnly?: boolean
}

const BOTH: Entry['databases'] = ['sqlite', 'postgresql']

/** The scenarios by name, with the databases that they apply to. */
export const scenarios: Record<string, Entry> = {
  crash: {
    scenario: crash,
    promise: 'a killed service keeps each acknowledged write exactly once, and no partial write',
    databases: BOTH
  },
  durability: {
    scenario: durability,
    promise: 'the service acknowledges a write only after the disk has it',
    databases: BOTH
  },
  processes: {
    scenario: processes,
    promise: 'three processes on one database are as correct as one',
    databases: ['postgresql']
  },
  'paused-process': {
    scenario: pausedProcess,
    promise: 'a process that is paused while it has locks delays no request of the others for long',
    databases: ['postgresql']
  },
  histories: {
    scenario: histories,
    promise: 'some order of the requests explains every answer, also when processes are killed or paused',
    databases: BOTH
  },
  'database-outage': {
    scenario: databaseOutage,
    promise: 'the service survives a database that is killed, suspended or down, and refuses requests soon',
    databases: ['postgresql']
  },
  failover: {
    scenario: failover,
    promise: 'the loss of a PostgreSQL with a standby costs no write, and no more time than its replacement takes',
    databases: ['postgresql'],
    fullFormOnly: true
  },
  'disk-faults': {
    scenario: diskFaults,
    promise: 'the service loses no write when the disk is full, fails or is locked, and recovers',
    databases: ['sqlite']
  },
  shutdown: {
    scenario: shutdown,
    promise: 'a service that gets SIGTERM answers completely or not at all, and ends',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  connections: {
    scenario: connections,
    promise: 'idle, slow, broken and hostile connections leak nothing and delay no other client',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  overload: {
    scenario: overload,
    promise: 'an overloaded service refuses writes at once, in bounded memory, and recovers',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  neighbours: {
    scenario: neighbours,
    promise: 'an account that attacks leaves the others their share, soon and without errors',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  followers: {
    scenario: followers,
    promise: 'thousands of followers cost a connection each, and get each event once',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  deliveries: {
    scenario: deliveries,
    promise: 'messages arrive although the service is killed and the receiver fails or is down',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  storm: {
    scenario: storm,
    promise: 'a million valid, broken, cut and slow requests end no process, and hurt no other account',
    databases: BOTH,
    quickDatabases: ['sqlite']
  },
  fuzz: {
    scenario: fuzz,
    promise: 'the service refuses invalid input, and answers alike on both databases',
    databases: BOTH,
    fullFormOnly: true
  }
}
