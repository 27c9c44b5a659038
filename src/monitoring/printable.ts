/**
 * Returns a text for one line of a terminal. Names come from strangers: their control characters could change the
 * terminal, and line separators and changes of the writing direction could forge what a line says.
 */
export function printable (text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (character) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
