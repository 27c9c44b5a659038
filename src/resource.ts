import type { TSchema } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import type { ErrorClass } from './errors.ts'
import type { ChangeLog, EventLog } from './database/group-commit/command.ts'
import type { Table } from './database/table.ts'

/** A part of the service as the rest of it needs to know it: the manifest that each resource's folder exports. */
export interface Resource {
  name: string
  /** Not set when the resource has no operations. */
  tag?: Tag | undefined
  /** Its tables, parents before children: rows are locked in this order and erased in the reverse one. */
  tables: Table[]
  /** Its schemas by any names, such as a module of them: those with an `$id` are components of the OpenAPI document. */
  schemas: object
  errors: Record<string, ErrorClass>
  events?: Record<string, EventDefinition>
  /** Writes the events of all resources. */
  eventLog?: EventLog
  /** Stores which rows of a channel changed. */
  changeLog?: ChangeLog
  /** Errors that every operation with an API key can answer with. */
  errorsOfAll?: ErrorClass[]
  /** Adds hooks that see every request with an API key, also one that a limit or its key refuses. */
  observers?: FastifyPluginAsync
  /** Adds hooks that refuse requests with an API key above a limit, before they know whether the key may write. */
  limits?: FastifyPluginAsync
  /** Adds hooks to every operation with an API key. They run after authorization and before the body is read. */
  hooks?: FastifyPluginAsync
  /** The operations that need an API key. */
  routes: FastifyPluginAsync
}

/** The tag of a resource's operations, in one of the navigation groups of the document. */
export interface Tag {
  name: string
  group: 'Pets' | 'Store' | 'Platform'
  /**
   * Its place among all tags; paths follow the order of their tags. Tags that share a position follow the order of
   * src/resources.ts.
   */
  position: number
  description: string
  /** The name for readers, if it is not `name` with a capital letter. */
  title?: string
}

/** A type of event, such as `pet.created`, with the members of its `data`. */
export interface EventDefinition {
  type: string
  data: Record<string, TSchema>
  /** An example of `data`, where the examples of its members' schemas do not fit. */
  example?: object | undefined
}
