import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addOpenapi (program: Command): void {
  program.command('openapi')
    .description('print the OpenAPI document')
    .option('--yaml', 'print YAML instead of JSON')
    .action(async ({ yaml = false }: { yaml?: boolean }) => {
      const { buildApp } = await import('../app.ts')
      // The document does not depend on the database. This database needs no file, no server and no port.
      const { METRICS_PORT: _port, ...settings } = readConfig(process.env)
      const config = { ...settings, DATABASE_URL: 'file::memory:', LOG_LEVEL: 'silent' as const, DELIVERY: false }
      const app = await buildApp(config)
      const { body } = await app.inject({
        url: `${config.BASE_PATH}/openapi.${yaml ? 'yaml' : 'json'}`, headers: { host: `127.0.0.1:${config.PORT}` }
      })
      await app.close()
      process.stdout.write(yaml ? body : `${JSON.stringify(JSON.parse(body), null, 2)}\n`)
    })
}
