/** The trend of a figure that is sampled repeatedly. */

export interface Sample {
  /** Milliseconds, of any clock. */
  at: number;
  value: number;
}

/**
 * Returns the median of the slopes between all pairs of samples (Theil and Sen), in units a minute. A few outliers,
 * such as a collector makes, do not move it. NaN for fewer than two samples.
 */
export function slopePerMinute(samples: readonly Sample[]): number {
  const slopes: number[] = [];
  for (const [index, one] of samples.entries())
    for (const other of samples.slice(index + 1))
      if (other.at > one.at) slopes.push((other.value - one.value) / (other.at - one.at));
  const middle = slopes.toSorted((a, b) => a - b)[Math.floor(slopes.length / 2)] ?? Number.NaN;
  return middle * 60_000;
}
