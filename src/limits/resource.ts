import { hasLab, type Config } from '../config.ts'
import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { limitHooks } from './plugin.ts'
import { limitRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

/** The limits that accounts set for themselves, under the tag of the lab. They exist where the setting LAB is true. */
export function limits (config: Pick<Config, 'LAB' | 'DEMO'>): Resource {
  const isOn = hasLab(config)
  return {
    name: 'limits',
    tables: [tables.accountLimits],
    schemas,
    errors,
    ...isOn ? { limits: limitHooks } : {},
    routes: isOn ? limitRoutes : async () => {}
  }
}
