import type { Config } from '../config.ts'
import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { petEvents } from './events.ts'
import { petRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export function pets ({ PET_READ_SUNSET }: Config): Resource {
  return {
    name: 'pets',
    tag: { name: 'animals', title: 'Pets', group: 'Pets', position: 1, description: 'The pets that the store offers.' },
    tables: [tables.pets],
    schemas,
    errors,
    events: petEvents,
    routes: petRoutes({ sunset: PET_READ_SUNSET })
  }
}
