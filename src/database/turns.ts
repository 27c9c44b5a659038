/** Gives callers their turns, one after the other, in the order in which they asked. */
export class Turns {
  #last: Promise<void> = Promise.resolve()

  /** Resolves when it is the caller's turn, to a function that ends the turn. */
  async take (): Promise<() => void> {
    let end = (): void => {}
    const before = this.#last
    this.#last = new Promise((resolve) => { end = resolve })
    await before
    return end
  }
}
