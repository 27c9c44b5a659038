import { ask, write } from './dom.js'

/**
 * Asks whether to open the store of a link in place of the user's own. A link can come from a stranger, who could read
 * what the user enters in that store.
 *
 * @param {{ name: string, key: string }} other
 * @param {string} ownName
 * @returns {Promise<boolean>}
 */
export async function confirmStore (other, ownName) {
  write('other-name', other.name)
  write('other-key', shortKey(other.key))
  write('own-name', ownName)
  return await ask('other-store')
}

/** Returns the part of a key that is no secret. */
export function shortKey (/** @type {string} */ key) {
  return `${key.split('_').slice(0, 2).join('_')}…`
}
