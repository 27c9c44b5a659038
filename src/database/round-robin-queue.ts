import { getOrAdd } from './get-or-add.ts'

/** A queue in which keys take turns: each has one item taken before any has its second. */
export class RoundRobinQueue<Key, Item> {
  /** The items of each key, in the order of the keys' turns. */
  readonly #lanes = new Map<Key, Item[]>()

  add (key: Key, item: Item): void {
    getOrAdd(this.#lanes, key, (): Item[] => []).push(item)
  }

  /** Removes the next item if `accept` returns true for it. @returns `undefined` without such an item */
  takeIf (accept: (item: Item) => boolean): Item | undefined {
    const [next] = this.#lanes
    if (next === undefined) return undefined
    const [key, lane] = next
    if (!accept(lane[0]!)) return undefined
    const item = lane.shift()
    // A map has its keys in the order of insertion.
    this.#lanes.delete(key)
    if (lane.length > 0) this.#lanes.set(key, lane)
    return item
  }
}
