/** Tells reads that are alone in their turn of the event loop from those of a crowd. */
export class CrowdDetector {
  #readsInTurn = 0
  /** Whether the last turn with a read had several: then others are likely to come in this turn. */
  #isCrowded = false

  /** Counts a read. Returns whether it is the first of this turn and no others are expected. */
  isAlone (): boolean {
    const isFirst = this.#readsInTurn++ === 0
    if (isFirst) {
      setImmediate(() => {
        this.#isCrowded = this.#readsInTurn > 1
        this.#readsInTurn = 0
      })
    }
    return isFirst && !this.#isCrowded
  }
}
