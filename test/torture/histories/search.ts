/**
 * A search for a linearization (Wing and Gong 1993) that visits no configuration twice (Lowe, "Testing for
 * linearizability", 2017). A history is linearizable if its operations can be put into one order that explains all
 * answers, and in which an operation comes before each one that was called after its answer.
 */

/** When an operation was called and answered, on one clock, in ms. */
export interface Timed {
  call: number
  /** `Infinity` without an answer: the operation may have happened at any time after its call, or never. */
  return: number
}

/** A sequential object. */
export interface Model<State, Operation> {
  initial: State
  /**
   * Returns the state after an operation, or `undefined` if the object in this state does not give the answer of the
   * operation. Returns the same object if nothing changes.
   */
  step: (state: State, operation: Operation) => State | undefined
  /** Tells whether an operation changes nothing in any state, and not only in the current one. */
  isRead: (operation: Operation) => boolean
  /** Returns a text that is the same for equal states. */
  keyOf: (state: State) => string
  /** Tells whether a history can end in a state. */
  accepts?: (state: State) => boolean
}

export interface Limits {
  /** The search of one object gives up after this time, in ms. */
  timeoutMs: number
  /** The search of one object gives up after this many configurations, which bounds its memory. */
  maxConfigurations: number
}

export type Verdict<State, Operation> =
  | { kind: 'linearizable', order: Operation[], state: State }
  | { kind: 'violation' }
  | { kind: 'undecided' }

/** One step of the search: a state, and the operations that can come next. */
interface Frame<State> {
  state: State
  /** The operations that this step appended to the order. */
  appended: number[]
  choices: Array<{ index: number, state: State }>
}

/** The configurations between two looks at the clock. */
const CLOCK_INTERVAL = 256

export function findLinearization<State, Operation extends Timed> (
  model: Model<State, Operation>, history: readonly Operation[], { timeoutMs, maxConfigurations }: Limits
): Verdict<State, Operation> {
  const operations = history.toSorted((a, b) => a.call - b.call)
  const order = createOrder(operations)
  const visited = new Set<string>()
  const deadline = performance.now() + timeoutMs
  const frames: Array<Frame<State>> = []
  let next: Frame<State> | undefined = { state: model.initial, appended: [], choices: [] }

  for (;;) {
    if (next !== undefined) {
      appendReads(model, order, next)
      const { state } = next
      if (order.isComplete() && (model.accepts?.(state) ?? true)) {
        return { kind: 'linearizable', order: order.appended.map((index) => operations[index]!), state }
      }
      const key = `${order.key()}|${model.keyOf(state)}`
      if (visited.has(key)) {
        order.remove(next.appended.length)
      } else {
        visited.add(key)
        next.choices = choicesOf(model, order, state)
        frames.push(next)
      }
    }
    if (visited.size > maxConfigurations) return { kind: 'undecided' }
    if (visited.size % CLOCK_INTERVAL === 0 && performance.now() > deadline) return { kind: 'undecided' }

    const frame = frames.at(-1)
    if (frame === undefined) return { kind: 'violation' }
    const choice = frame.choices.pop()
    if (choice === undefined) {
      order.remove(frame.appended.length)
      frames.pop()
      next = undefined
    } else {
      order.append(choice.index)
      next = { state: choice.state, appended: [choice.index], choices: [] }
    }
  }
}

/**
 * Appends the reads that fit. They need no alternative: in any order that has such a read later, it can be moved to
 * here.
 */
function appendReads<State, Operation extends Timed> (
  { step, isRead }: Model<State, Operation>, order: Order<Operation>, frame: Frame<State>
): void {
  for (let found = true; found;) {
    found = false
    for (const index of order.candidates()) {
      const operation = order.operations[index]!
      if (!isRead(operation) || operation.return === Infinity) continue
      if (step(frame.state, operation) === undefined) continue
      order.append(index)
      frame.appended.push(index)
      found = true
    }
  }
}

/** Returns the next operations with the states after them. The last one is tried first: the one that ends first. */
function choicesOf<State, Operation extends Timed> (
  { step, isRead }: Model<State, Operation>, { operations, candidates }: Order<Operation>, state: State
): Frame<State>['choices'] {
  const choices: Frame<State>['choices'] = []
  for (const index of candidates()) {
    const operation = operations[index]!
    if (isRead(operation)) continue
    const after = step(state, operation)
    // An operation without an answer that changes nothing might as well not have happened.
    if (after === undefined || (after === state && operation.return === Infinity)) continue
    choices.push({ index, state: after })
  }
  return choices.sort((a, b) => operations[b.index]!.return - operations[a.index]!.return)
}

/** The order that a search has built so far. Operations are numbered by their calls. */
interface Order<Operation> {
  operations: readonly Operation[]
  appended: number[]
  append: (index: number) => void
  /** Removes the operations that were appended last. */
  remove: (count: number) => void
  /** Returns the operations that can come next: none that was called after the answer of a missing one. */
  candidates: () => number[]
  /** Tells whether all operations that were answered are in the order. */
  isComplete: () => boolean
  /** Returns a text that is the same for the same set of operations. */
  key: () => string
}

function createOrder<Operation extends Timed> (operations: readonly Operation[]): Order<Operation> {
  const isAppended = new Uint8Array(operations.length)
  const appended: number[] = []
  let missing = operations.filter((operation) => operation.return !== Infinity).length
  /** All operations before it are in the order. */
  let first = 0

  return {
    operations,
    appended,
    append (index) {
      isAppended[index] = 1
      appended.push(index)
      if (operations[index]!.return !== Infinity) missing--
      while (isAppended[first] === 1) first++
    },
    remove (count) {
      for (const index of appended.splice(appended.length - count)) {
        isAppended[index] = 0
        if (operations[index]!.return !== Infinity) missing++
        first = Math.min(first, index)
      }
    },
    candidates () {
      const found: number[] = []
      let end = Infinity
      for (let i = first; i < operations.length && operations[i]!.call <= end; i++) {
        if (isAppended[i] === 1) continue
        found.push(i)
        end = Math.min(end, operations[i]!.return)
      }
      return found.filter((index) => operations[index]!.call <= end)
    },
    isComplete: () => missing === 0,
    key () {
      let last = operations.length - 1
      while (last >= 0 && isAppended[last] === 0) last--
      const left: number[] = []
      for (let i = first; i < last; i++) if (isAppended[i] === 0) left.push(i)
      return `${last} ${left.join(' ')}`
    }
  }
}

/** The shortest beginning of a history that has no linearization. */
export interface Window<State, Operation> {
  /** The operation whose answer nothing explains. */
  culprit: Operation
  /** The operations that were in flight when the culprit was answered. */
  concurrent: Operation[]
  /** An order of all operations that were answered before the culprit. */
  before: Operation[]
  /** The state after that order. */
  state: State
}

/**
 * Finds the first answer of a history that nothing explains. @returns `undefined` if each answer has an explanation, so
 * that only the end does not fit, or the search takes too long
 */
export function findWindow<State, Operation extends Timed> (
  model: Model<State, Operation>, history: readonly Operation[], limits: Limits
): Window<State, Operation> | undefined {
  const { accepts, ...beginnings } = model
  const answered = history.filter((operation) => operation.return !== Infinity)
    .sort((a, b) => a.return - b.return)
  /** What happened until the answer of an operation. Operations that were answered later have no answer yet. */
  const until = (count: number): Operation[] => {
    const end = answered[count - 1]?.return ?? -Infinity
    return history.filter(({ call }) => call <= end)
      .map((operation) => operation.return <= end ? operation : { ...operation, return: Infinity })
  }
  let [good, bad] = [0, answered.length]
  let best = findLinearization(beginnings, [], limits)
  const whole = findLinearization(beginnings, history, limits)
  if (whole.kind !== 'violation') return undefined
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    const verdict = findLinearization(beginnings, until(middle), limits)
    if (verdict.kind === 'undecided') return undefined
    if (verdict.kind === 'violation') {
      bad = middle
    } else {
      good = middle
      best = verdict
    }
  }
  if (best.kind !== 'linearizable') return undefined
  const culprit = answered[bad - 1]!
  const concurrent = until(bad).filter((operation) => operation.return === Infinity)
  return { culprit, concurrent, before: best.order, state: best.state }
}
