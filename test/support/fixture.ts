import { existsSync, readdirSync } from 'node:fs'
import type { Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import type { ListDefinition } from '../../src/database/sql/keyset-pagination.ts'
import { createResources } from '../../src/resources.ts'
import type { Answer, Client, TestApp } from './app.ts'

// The part of each resource in the generated tests. The file `test/<name>/fixture.ts` exports it as `fixture`.

export type Id = number | string

/** Ids by the names that paths, queries and bodies give them, such as `petId`. */
export type CreatedIds = Record<string, Id>

export interface Fixture {
  record?: RecordFixture | RecordFixture[]
  list?: ListFixture | ListFixture[]
  /** Changes of one record by operationId. */
  changes?: Record<string, PrepareChange>
  /** The operations, by method and path, such as `get /pets`. */
  operations: Record<string, OperationRow>
  /** The writes that take an Idempotency-Key, by operationId. */
  keyedWrites?: Record<string, KeyedWrite>
  /** The writes whose response holds a secret, by operationId. They take no Idempotency-Key. */
  secretWrites?: Record<string, PrepareWrite>
  /** The error codes that only this resource has. */
  errors?: Record<string, ErrorCase>
}

export interface RecordFixture {
  /** The name of the record's id in paths, queries and bodies. */
  idName: string
  /** Creates a record. `created` holds the ids of the resources before this one. */
  create: (client: Client, created: CreatedIds) => Promise<Id>
  /** The error code of a path whose id names no record. */
  missingCode: string
}

export interface ListFixture {
  definition: ListDefinition
  /** A value for each filter that takes one value. */
  samples?: Record<string, unknown>
  /** Returns an INSERT of the rows that the query plans are made for. */
  insertRows: (rows: SampleRows) => string
}

/** SQL fragments for an INSERT. */
export interface SampleRows {
  /** The FROM clause; `i` counts from 1. */
  from: string
  /** An expression for the account of row `i`. */
  account: string
  /** A literal for a time. */
  time: string
}

/** Creates a record and returns its address, with two changes of it. A deletion is only one change. */
export type PrepareChange = (client: Client) => Promise<RecordChange>

export interface RecordChange { read: string, method: string, path: string, bodies: unknown[] }

/** The operationId, the tag, the status of success, and the codes that only this operation has. */
export type OperationRow = [operationId: string, tag: string, status: number, ...codes: string[]]

/** Prepares a store for a write and returns the request. */
export type PrepareWrite = (client: Client) => Promise<[method: string, path: string, body?: unknown]>

export interface KeyedWrite {
  prepare: PrepareWrite
  /** The path whose response changes when the write happens again. */
  shows: string
}

export type ErrorCase = { status: number | number[] } & (RaisedError | UnraisedError)

export interface RaisedError {
  /** @param status the status to raise, for a code that has several */
  raise: (app: RaisingApp, client: Client, status: number) => Promise<Answer>
  /** Settings of a separate service. All cases without settings share one service. */
  settings?: Record<string, string>
}

/** An error that one request cannot cause, and the reason. */
export interface UnraisedError { elsewhere: string }

export type RaisingApp = TestApp & { t: Test }

/** Loads the fixtures of all resources, in the order of the resources: parents before children. */
export async function loadFixtures (): Promise<Fixture[]> {
  const root = new URL('../', import.meta.url)
  const found = readdirSync(root).filter((name) => existsSync(new URL(`${name}/fixture.ts`, root)))
  const names = createResources(readConfig({})).map(({ name }) => name)
  const missing = names.filter((name) => !found.includes(name))
  const unknown = found.filter((name) => name !== 'support' && !names.includes(name))
  if (missing.length > 0) throw new Error(`test/${missing[0]}/fixture.ts is missing: each resource has a fixture.`)
  if (unknown.length > 0) throw new Error(`test/${unknown[0]}/fixture.ts belongs to no resource of src/resources.ts.`)
  return await Promise.all(names.map(async (name) => {
    // The bundler of the tests finds the files by this pattern.
    const { fixture } = await import(`../${name}/fixture.ts`) as { fixture: Fixture }
    return fixture
  }))
}

/** Returns the records of all fixtures. A resource can have several kinds. */
export function recordsOf (fixtures: Fixture[]): RecordFixture[] {
  return fixtures.flatMap(({ record = [] }) => record)
}

/** Merges tables of several fixtures. Rejects a name that two of them have, as after an incomplete copy. */
export function mergeTables<T> (tables: Array<Record<string, T> | undefined>): Record<string, T> {
  const merged: Record<string, T> = {}
  for (const [name, row] of tables.flatMap((table = {}) => Object.entries(table))) {
    if (name in merged) throw new Error(`two fixtures have an entry ${name}`)
    merged[name] = row
  }
  return merged
}

/** Creates a record of each resource and returns the ids. */
export async function createRecords (client: Client, fixtures: Fixture[]): Promise<CreatedIds> {
  const created: CreatedIds = {}
  for (const { idName, create } of recordsOf(fixtures)) created[idName] = await create(client, { ...created })
  return created
}
