/**
 * Waits for a task and for work that goes on meanwhile, which a signal ends when the task does.
 *
 * @throws what either of them throws, when both have ended
 */
export async function alongside<T, W> (
  task: Promise<T>, work: (signal: AbortSignal) => Promise<W>
): Promise<[result: T, worked: W]> {
  const ended = new AbortController()
  const both = [task.finally(() => { ended.abort() }), work(ended.signal)] as const
  await Promise.allSettled(both)
  return await Promise.all(both)
}
