/**
 * Returns one case in `share`, from another start for each `index`, so that tests of near-equal cases together try
 * all of them.
 */
export function shareOf<Case>(cases: readonly Case[], share: number, index: number): Case[] {
  return cases.filter((_, at) => (at + index) % share === 0);
}
