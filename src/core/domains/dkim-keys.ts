/** Algorithms of a DKIM key: RSA (RFC 6376) and Ed25519 (RFC 8463). */
export const DKIM_ALGORITHMS = ["rsa", "ed25519"] as const;
export type DkimAlgorithm = (typeof DKIM_ALGORITHMS)[number];

/** The keys that a domain signs with, as the API names them. */
export const DKIM_CHOICES = [...DKIM_ALGORITHMS, "both"] as const;
export type DkimChoice = (typeof DKIM_CHOICES)[number];

/** Returns the algorithms of a choice. */
export function algorithmsOf(choice: DkimChoice): readonly DkimAlgorithm[] {
  return choice === "both" ? DKIM_ALGORITHMS : [choice];
}
