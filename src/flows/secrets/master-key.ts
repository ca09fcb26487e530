import { deriveKey, unsealOrNull } from "../../core/crypto/secretbox.ts";
import { DERIVED_KEYS, type Purpose } from "../../store/installation/secrets.ts";

/** A master key: its id, which tells it from others and reveals nothing, and the keys derived from it. */
export interface MasterKey {
  id: string;
  text: string;
  derived: Readonly<Record<Purpose, Uint8Array>>;
}

export const PURPOSES = Object.keys(DERIVED_KEYS) as Purpose[];
/** Hexadecimal characters of an id. */
const ID_CHARS = 16;

/** Derives the keys from a master key. */
export function masterKeyOf(text: string): MasterKey {
  const master = Buffer.from(text, "utf8");
  const derived = PURPOSES.map((purpose) => [purpose, deriveKey(master, purpose)]);
  return {
    id: deriveKey(master, "id").toString("hex").slice(0, ID_CHARS),
    text,
    derived: Object.fromEntries(derived) as MasterKey["derived"],
  };
}

/** Returns whether a key opens what is sealed. */
export function opens(box: Uint8Array, sealed: string): boolean {
  return unsealOrNull(box, sealed) !== null;
}
