import { hasLab, type Config } from '../config.ts'
import * as tables from '../generated/tables.ts'
import type { Resource, Tag } from '../resource.ts'
import * as effects from './effects.ts'
import * as errors from './errors.ts'
import { labHooks, movedClocks } from './plugin.ts'
import { labRoutes } from './routes.ts'
import * as schemas from './schemas.ts'
import { labChanges } from './state-commands.ts'
import { STORED_TABLES, StoreCountsSchema, StoreRowSchema } from './stored-tables.ts'

const { INJECTED, ...errorClasses } = errors

const TAG: Tag = {
  name: 'lab',
  group: 'Platform',
  position: 9,
  description: 'Faults, limits, a clock, snapshots and a journal of requests for tests of your client. Everything ' +
    'here belongs to your account and touches no other. A response that a fault hit has the header `Petstore-Fault` ' +
    'with the id of the fault. Responses to an account whose clock was moved have the header `Petstore-Clock` with ' +
    'its time.'
}

/**
 * The lab exists where the setting LAB is true. Its tables, error codes and event types exist everywhere: accounts are
 * deleted with their rows, and clients do not depend on a setting.
 */
export function lab (config: Pick<Config, 'LAB' | 'DEMO'>): Resource {
  const isOn = hasLab(config)
  return {
    name: 'lab',
    tag: isOn ? TAG : undefined,
    tables: [tables.faults, tables.snapshots, tables.snapshotRows, tables.labStates],
    schemas: [
      ...effects.EFFECTS, effects.EffectSchema, ...STORED_TABLES.map(({ schema }) => schema), StoreRowSchema,
      StoreCountsSchema, ...Object.values(schemas)
    ],
    errors: { ...errorClasses, ...INJECTED },
    errorsOfAll: isOn ? Object.values(INJECTED) : [],
    events: schemas.labEvents,
    changeLog: labChanges,
    hooks: isOn ? labHooks : movedClocks,
    routes: isOn ? labRoutes : async () => {}
  }
}
