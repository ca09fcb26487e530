/** Returns whether a key with `held` scopes has the right `scope`. A key without scopes has all rights. */
export function allows(held: readonly string[], scope: string): boolean {
  return held.length === 0 || held.includes(scope);
}
