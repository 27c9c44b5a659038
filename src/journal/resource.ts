import { hasLab, type Config } from '../config.ts'
import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { journalHooks } from './plugin.ts'
import { journalRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

/** The journal of the lab, under the tag of the lab. It exists where the setting LAB is true; its tables always do. */
export function journal (config: Pick<Config, 'LAB' | 'DEMO' | 'STREAMS_PER_ACCOUNT'>): Resource {
  const isOn = hasLab(config)
  return {
    name: 'journal',
    tables: [tables.journals, tables.recordedBatches],
    schemas,
    errors,
    ...isOn ? { observers: journalHooks } : {},
    routes: isOn ? journalRoutes({ streamsPerAccount: config.STREAMS_PER_ACCOUNT }) : async () => {}
  }
}
