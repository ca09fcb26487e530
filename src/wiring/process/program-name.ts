/** Returns the command to type: `postrider`, or `npm run postrider --` in a clone. */
export function programName(): string {
  return import.meta.path.startsWith("/$bunfs/") ? "postrider" : "npm run postrider --";
}
