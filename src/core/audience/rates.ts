/** Quantile of the normal distribution for 95 % in the middle. */
const Z_95 = 1.959963984540054;
/** Quantile of the normal distribution for 80 %: how often a test finds a difference that is there. */
const Z_POWER = 0.8416212335729143;

/** Part of a whole that was observed, with the limits between which the true rate lies with 95 %. From 0 to 1. */
export interface Rate {
  count: number;
  /** Null, as are the others: nothing to divide by. */
  rate: number | null;
  low: number | null;
  high: number | null;
  /** The greater distance of both limits from the rate. */
  margin: number | null;
}

/** Returns a rate with its 95 % interval by Wilson's score (1927). An interval of the normal distribution is wrong for rates near 0. */
export function rateOf(count: number, of: number): Rate {
  if (of === 0) return { count, rate: null, low: null, high: null, margin: null };
  const rate = Math.min(1, count / of);
  const square = Z_95 ** 2 / of;
  const center = (rate + square / 2) / (1 + square);
  const half = (Z_95 / (1 + square)) * Math.sqrt((rate * (1 - rate) + square / 4) / of);
  const low = Math.max(0, center - half);
  const high = Math.min(1, center + half);
  return { count, rate, low, high, margin: Math.max(rate - low, high - rate) };
}

/** The difference of two rates, with its 95 % interval. Null: a rate is missing. */
export interface Comparison {
  difference: number | null;
  low: number | null;
  high: number | null;
  /** True if 0 is not in the interval. */
  isClear: boolean;
}

/** Returns the first rate minus the second, with Newcombe's hybrid score interval (1998, method 10), which is made of both Wilson intervals. */
export function compared(one: Rate, other: Rate): Comparison {
  if (one.rate === null || other.rate === null)
    return { difference: null, low: null, high: null, isClear: false };
  const difference = one.rate - other.rate;
  const low = difference - Math.hypot(one.rate - (one.low ?? 0), (other.high ?? 1) - other.rate);
  const high = difference + Math.hypot((one.high ?? 1) - one.rate, other.rate - (other.low ?? 0));
  return { difference, low, high, isClear: low > 0 || high < 0 };
}

/**
 * Returns how many recipients each of two groups needs, so that a difference between two rates is clear (95 %, two-sided) in most tests.
 * @param power quantile of the normal distribution for the part of the tests; default: 4 of 5
 */
export function neededFor(one: number, other: number, power = Z_POWER): number {
  const mean = (one + other) / 2;
  const chance = Z_95 * Math.sqrt(2 * mean * (1 - mean));
  const found = power * Math.sqrt(one * (1 - one) + other * (1 - other));
  return Math.ceil(((chance + found) / (one - other)) ** 2);
}
