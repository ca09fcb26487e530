/** Counts the typing errors between two names: characters missing, added, changed, or swapped with the next one. */
export function typingErrors(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const changed = one[i - 1] === other[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        cell(last, j) + 1,
        cell(row, j - 1) + 1,
        cell(last, j - 1) + changed,
        isSwap ? cell(beforeLast, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return cell(last, other.length);
}

/**
 * Returns the name that the input was probably meant to be, or null. The number of typing errors allowed grows with
 * its length.
 */
export function nearestName(
  text: string,
  names: readonly string[],
  charactersPerError: number,
): string | null {
  const maxErrors = Math.max(1, Math.floor(text.length / charactersPerError));
  const near = names
    .map((name) => ({ name, errors: typingErrors(text, name) }))
    .filter(({ errors }) => errors <= maxErrors)
    .sort((one, other) => one.errors - other.errors);
  return near[0]?.name ?? null;
}

function cell(row: readonly number[], at: number): number {
  return row[at] ?? Number.POSITIVE_INFINITY;
}
