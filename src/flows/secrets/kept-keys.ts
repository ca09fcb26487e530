import type { Key } from "../../core/crypto/key-ring.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { DERIVED_KEYS, KEPT_DAYS, type Purpose } from "../../store/installation/secrets.ts";

/** Maximum number of earlier master keys whose links work. A rotation beyond it ends the oldest. */
export const MAX_KEPT = 8;

/** Keys that were derived from an earlier master key. They open links and tokens, and make none. */
export interface KeptKeys {
  /** Id of that master key. */
  id: string;
  /** Milliseconds. */
  until: number;
  /** In base64url. */
  keys: { [For in Purpose]?: string };
}

/** Opens the kept keys that are still valid. @throws Error if none of the keys opens them */
export function openKept(boxKey: Key, sealed: string | undefined, now: number): KeptKeys[] {
  if (sealed === undefined || sealed === "") return [];
  const kept: KeptKeys[] = JSON.parse(unseal(boxKey, sealed));
  return kept.filter(({ until }) => until > now);
}

/** Seals them. */
export function sealKept(boxKey: Key, kept: readonly KeptKeys[]): string {
  return seal(boxKey, JSON.stringify(kept.slice(-MAX_KEPT)));
}

/** Returns what is kept of the derived keys of an earlier master key. */
export function keptOf(id: string, derived: Readonly<Record<Purpose, Uint8Array>>, now: number): KeptKeys {
  const keys = Object.entries(DERIVED_KEYS).filter(([, fate]) => fate === "kept");
  return {
    id,
    until: now + KEPT_DAYS * DAY_MS,
    keys: Object.fromEntries(
      keys.map(([purpose]) => [purpose, Buffer.from(derived[purpose as Purpose]).toString("base64url")]),
    ),
  };
}
