/** Returns how a person calls this program: by its name, or in a clone by the package's script. */
export function programName(): string {
  return import.meta.path.startsWith("/$bunfs/") ? "postrider" : "npm run postrider --";
}
