import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Compiles the library that makes the disk slow. @returns its file, or `undefined` without Linux or a C compiler */
export function buildFsyncDelay (folder: string): string | undefined {
  if (process.platform !== 'linux') return undefined
  const source = fileURLToPath(new URL('fsync-delay.c', import.meta.url))
  const library = join(folder, 'fsync-delay.so')
  const { status } = spawnSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'], { stdio: 'inherit' })
  return status === 0 ? library : undefined
}

/** Returns the environment variables of a process for which each sync of the disk takes longer. */
export function fsyncDelay (library: string, ms: number): Record<string, string> {
  return { LD_PRELOAD: library, FSYNC_DELAY_US: String(ms * 1_000) }
}
