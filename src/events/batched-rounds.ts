/** Limits the items that are worked on at a time, so that requests to the service find room beside them. */
const BATCH_SIZE = 50

export interface BatchedTask<T> {
  /** Returns the items of one round. */
  items: () => Iterable<T>
  work: (item: T) => Promise<void>
  /** Called with one error for each round that had any. */
  onError: (error: unknown) => void
}

/** Returns a function that works on all items, batch by batch. A call during a round does nothing. */
export function createBatchedTask<T> ({ items, work, onError }: BatchedTask<T>): () => void {
  let state: 'idle' | 'running' = 'idle'

  async function runRound (): Promise<void> {
    const left = [...items()]
    const errors: unknown[] = []
    while (left.length > 0) {
      for (const result of await Promise.allSettled(left.splice(0, BATCH_SIZE).map(work))) {
        if (result.status === 'rejected') errors.push(result.reason)
      }
    }
    if (errors.length > 0) onError(errors[0])
  }

  return () => {
    if (state === 'running') return
    state = 'running'
    runRound().catch(onError).finally(() => { state = 'idle' })
  }
}
