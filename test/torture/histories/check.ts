import { checkFeed, type Feed } from './feed.ts'
import { createObjectModel, type ObjectState } from './object-model.ts'
import type { Event, Operation } from './operation.ts'
import { explainFeedViolation, explainViolation } from './explain.ts'
import { findLinearization, findWindow, type Limits, type Verdict } from './search.ts'
import {
  applyToCategory, applyToMessage, applyToPet, newPetObject, newRecord, type Apply
} from './store-model.ts'

export interface Checked {
  objects: number
  /** The objects that the search could not decide within its limits. */
  undecided: number
  violations: string[]
}

const LIMITS: Limits = { timeoutMs: 10_000, maxConfigurations: 200_000 }

type AnyState = ObjectState<object>

/** Returns the model of an object by its kind, which its name begins with. */
function modelOf (object: string): { apply: Apply<any>, initial: object } {
  if (object.startsWith('pet ')) return { apply: applyToPet, initial: newPetObject }
  if (object.startsWith('category ')) return { apply: applyToCategory, initial: newRecord }
  return { apply: applyToMessage, initial: newRecord }
}

/**
 * Checks a history object by object: a history is linearizable if that of each object is (Herlihy and Wing 1990; Horn
 * and Kroening call it P-compositionality). The feed then shows one order of all objects, which must be one of those
 * that explain the answers.
 */
export function checkHistory (history: readonly Operation[], feed: Feed, limits = LIMITS): Checked {
  const byObject = groupByObject(history)
  const eventsOf = groupByObject(feed.events)
  const checked: Checked = { objects: byObject.size, undecided: 0, violations: [] }
  /** The events that each operation wrote, by the order that explains its object. */
  const written = new Map<Operation, Event[]>()

  for (const [object, operations] of byObject) {
    const events = eventsOf.get(object) ?? []
    const model = createModel(object, operations, events)
    const verdict = findLinearization(model, operations, limits)
    if (verdict.kind === 'undecided') checked.undecided++
    else if (verdict.kind === 'violation') checked.violations.push(explain(object, operations, events, limits))
    else assignEvents(verdict, events, model.step, model.initial, written)
  }
  for (const object of eventsOf.keys()) {
    if (!byObject.has(object)) checked.violations.push(`the feed has events of ${object}, which no client created`)
  }
  checked.violations.push(...checkFeed(history, written, feed))
  return checked
}

function groupByObject<Item extends { object: string }> (items: readonly Item[]): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(item.object)
    if (group === undefined) groups.set(item.object, [item])
    else group.push(item)
  }
  return groups
}

function createModel (
  object: string, operations: readonly Operation[], events?: readonly Event[]
): ReturnType<typeof createObjectModel<object>> {
  const { apply, initial } = modelOf(object)
  return createObjectModel(apply, initial, operations, events)
}

/** Searches the reason of a violation: first without the feed, so that a contradiction of answers is told as one. */
function explain (object: string, operations: Operation[], events: Event[], limits: Limits): string {
  const alone = createModel(object, operations)
  const contradiction = findWindow(alone, operations, limits)
  if (contradiction !== undefined) return explainViolation(object, contradiction)
  const window = findWindow(createModel(object, operations, events), operations, limits)
  if (window !== undefined) return explainFeedViolation(object, events, window)
  return explainFeedViolation(object, events, longestBeginning(object, operations, events, limits))
}

/** Finds the longest beginning of an object's events that operations explain, if all answers have an explanation. */
function longestBeginning (
  object: string, operations: Operation[], events: Event[], limits: Limits
): { state: AnyState } {
  const model = createModel(object, operations, events)
  let longest = model.initial
  for (let [low, high] = [0, events.length + 1]; high - low > 1;) {
    const middle = (low + high) >> 1
    const reaches = { ...model, accepts: (state: AnyState) => state.events >= middle }
    const verdict = findLinearization(reaches, operations, limits)
    if (verdict.kind === 'linearizable') {
      longest = verdict.state
      low = middle
    } else {
      high = middle
    }
  }
  return { state: longest }
}

/** Notes which events each operation of an order wrote. Operations that write the same are told apart by nothing. */
function assignEvents (
  verdict: Verdict<AnyState, Operation> & { kind: 'linearizable' }, events: Event[],
  step: (state: AnyState, operation: Operation) => AnyState | undefined, initial: AnyState,
  written: Map<Operation, Event[]>
): void {
  let state = initial
  for (const operation of verdict.order) {
    const after = step(state, operation)!
    if (after.events > state.events) written.set(operation, events.slice(state.events, after.events))
    state = after
  }
}
