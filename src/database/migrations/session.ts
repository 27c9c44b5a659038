/** A connection of its own for migrations. It has no time limit for a statement. */
export interface MigrationSession {
  /** Runs a statement without parameters, and returns its rows. */
  rows: (sql: string) => Promise<object[]>
  /** Runs several statements. */
  script: (sql: string) => Promise<void>
  /** Begins a transaction when no other process migrates, and keeps others from it until the end of the transaction. */
  begin: () => Promise<void>
  /** @throws if the transaction leaves the database in a state that it must not have */
  commit: () => Promise<void>
  close: () => Promise<void>
}

/** Maximum time to wait for the migration of another process, in ms. */
export const LOCK_WAIT_MS = 60_000
