// The functions as they are when the module is loaded. Fake timers of a test would otherwise stop every request.

export const { setTimeout, clearTimeout } = globalThis

const { Date: RealDate } = globalThis

/** Returns the present time in ms since 1970. */
export function now (): number {
  return RealDate.now()
}

/** Returns a time in ms by a clock that is never set. Durations are differences of its times. */
export const monotonicNow = performance.now.bind(performance)

interface Util { transferableAbortController: () => AbortController }
interface NodeProcess { getBuiltinModule?: (id: string) => Util }

/**
 * Returns a controller whose signal `fetch` accepts. jsdom replaces the class by its own in the tests of pages, and
 * Node's `fetch` refuses the signals of that one.
 */
export function createController (): AbortController {
  const controller = new AbortController()
  try {
    return new Request('http://localhost', { signal: controller.signal }) && controller
  } catch {
    const { process } = globalThis as { process?: NodeProcess }
    return process?.getBuiltinModule?.('node:util').transferableAbortController() ?? controller
  }
}

/** Waits for a promise until a signal is aborted. A `fetch` of another implementation can ignore its signal. */
export async function untilAborted<T> (promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort: (() => void) | undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    // The caller decides what the reason is. An Error is the default.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    abort = () => { reject(signal.reason) }
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
  return await Promise.race([promise, aborted]).finally(() => { signal.removeEventListener('abort', abort!) })
}
