/** So many are looked after at a time, so that requests find room beside them. */
const AT_ONCE = 50

/**
 * Does something for many, some at a time; asked again while it is at it, it does nothing.
 *
 * @param failed told of one error for each round that had any
 */
export function createBatchedTask<T> (all: () => Iterable<T>, work: (one: T) => Promise<void>, failed: (error: unknown) => void): () => void {
  let running = false

  async function round (): Promise<void> {
    const left = [...all()]
    const errors: unknown[] = []
    while (left.length > 0) {
      for (const result of await Promise.allSettled(left.splice(0, AT_ONCE).map(work))) {
        if (result.status === 'rejected') errors.push(result.reason)
      }
    }
    if (errors.length > 0) failed(errors[0])
  }

  return () => {
    if (running) return
    running = true
    round().catch(failed).finally(() => { running = false })
  }
}
