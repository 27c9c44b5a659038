/** Writes delay large reads for this time, in ms: the clients that write are likely to write again. */
const WRITE_WINDOW_MS = 1_000

/** A process that writes all the time announces its changes several times within this time, in ms. */
const PEER_WINDOW_MS = 50

/** Records work that large reads must not delay: small reads of this process, and writes of all processes. */
export class OtherWork {
  #lastReadAt = -Infinity
  #lastWriteAt = -Infinity
  #lastPeerWriteAt = -Infinity

  readArrived (): void {
    this.#lastReadAt = performance.now()
  }

  /** A write arrived or was committed. */
  writeSeen (): void {
    this.#lastWriteAt = performance.now()
  }

  /** Another process has committed a write. */
  peerWriteSeen (): void {
    this.#lastPeerWriteAt = performance.now()
  }

  /** Returns whether another process writes all the time. */
  hasPeer (): boolean {
    return performance.now() - this.#lastPeerWriteAt < PEER_WINDOW_MS
  }

  /** Returns whether a small read has arrived since a time of `performance.now()`, or whether there are writes. */
  isPresentSince (time: number): boolean {
    return this.hasReadsSince(time) || this.hasWrites()
  }

  hasReadsSince (time: number): boolean {
    return this.#lastReadAt > time
  }

  hasWrites (): boolean {
    return performance.now() - this.#lastWriteAt < WRITE_WINDOW_MS
  }
}
