import { isatty } from 'node:tty'

/** Remembers the terminals of this process. @returns a function that tells whether one of them was closed since */
export function watchTerminals (): () => boolean {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  return () => terminals.some((fd) => !isatty(fd))
}
