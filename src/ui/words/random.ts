/** Returns a string that nobody else has. `randomUUID` is not there if the page was opened over http from another machine. */
export function randomText(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
}
