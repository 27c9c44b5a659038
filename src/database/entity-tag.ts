/** Returns a row's version as a strong entity tag (RFC 9110 section 8.8.1). */
export function etagOf (version: number | bigint): string {
  return `"${version}"`
}
