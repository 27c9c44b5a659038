/** A Map, a WeakMap, or a cache that forgets what was not used for long. */
interface Keyed<Key, Value> {
  get: (key: Key) => Value | undefined
  set: (key: Key, value: Value) => unknown
}

/** Returns the value of a key, and makes it if there is none. */
export function getOrAdd<Key, Value> (map: Keyed<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key)
  if (value === undefined) map.set(key, value = make())
  return value
}
