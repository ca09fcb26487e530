/** True in the built program, whose modules Bun keeps under this path. */
export const IS_BUILT: boolean = import.meta.path.startsWith("/$bunfs/");

/** Returns the command to type: `postrider`, or `npm run postrider --` in a clone. */
export function programName(): string {
  return IS_BUILT ? "postrider" : "npm run postrider --";
}
