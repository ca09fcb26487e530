import type { Config } from "../../config.ts";
import type { KeyRing } from "../../core/crypto/key-ring.ts";
import { SettingsError } from "../../core/errors.ts";
import { atMostEvery } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import { WRONG_KEY } from "../../flows/records/keys.ts";
import { type KeptKeys, openKept } from "../../flows/secrets/kept-keys.ts";
import { type MasterKey, masterKeyOf, opens, PURPOSES } from "../../flows/secrets/master-key.ts";
import { log } from "../../log.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import { claimFact, type Fact, readFacts } from "../../store/installation/facts.ts";
import type { Purpose } from "../../store/installation/secrets.ts";
import { installationKey } from "../../store/messages/sending.ts";
import { heldMasterKeys } from "./master-key.ts";

// The database says which master key seals, so processes that were given two keys in any order agree. While a rotation is pending
// both are in use, and any process opens what another has sealed. Afterwards the earlier one opens nothing.

/** The keys of the installation, each for one purpose and derived from the master key. */
export type InstallationKeys = Readonly<Record<Purpose, KeyRing>>;

/** Returns the keys of one master key. */
export function keysOf(masterKey: string): InstallationKeys {
  const { derived } = masterKeyOf(masterKey);
  return Object.fromEntries(
    PURPOSES.map((purpose) => [purpose, { keys: [derived[purpose]] }]),
  ) as unknown as InstallationKeys;
}

/** Returns the keys of the first master key that this process has, which the first start makes. */
export function openKeys(masterKey: string | null, dataDir: string): InstallationKeys {
  const [first = ""] = heldMasterKeys({ masterKey, masterKeyOld: null, dataDir }, false);
  return keysOf(first);
}

/** The settings that hold master keys. */
export type KeySettings = Pick<Config, "masterKey" | "masterKeyOld" | "dataDir">;

/** Which master keys are in use. */
export interface InUse {
  /** The one that seals; null if this process does not have it. */
  sealing: MasterKey | null;
  /** Ids of those before and after the pending rotation; null if there is none. */
  rotation: readonly [from: string, to: string] | null;
  /** Those of the rotation that this process has, the sealing one first. */
  used: readonly MasterKey[];
  /** All that this process has. */
  held: readonly MasterKey[];
  facts: Partial<Record<Fact, string>>;
}

/** Reads which master keys are in use. Until a start has decided on one, it is the one that opens the installation's own key. */
export async function keysInUse(db: Db, settings: KeySettings): Promise<InUse> {
  const own = await installationKey(db);
  const held = heldMasterKeys(settings, own !== null).map(masterKeyOf);
  const facts = await readFacts(db);
  const fits = ({ derived }: MasterKey) => own === null || opens(derived.box, own.sealedPrivateKey);
  const chosen = facts.master_key ?? held.find(fits)?.id;
  const [from, to] = (facts.master_key_rotation ?? "").split(" ");
  const rotation = from && to ? ([from, to] as const) : null;
  const sealing = held.find(({ id }) => id === chosen) ?? null;
  const others = held.filter((key) => key !== sealing && rotation?.includes(key.id));
  return { sealing, rotation, used: [...(sealing === null ? [] : [sealing]), ...others], held, facts };
}

/**
 * Opens the keys that are in use, and follows a rotation.
 * @returns `look` reads again which are in use, changes `keys`, and returns the ids of the master keys, the sealing one first
 * @throws SettingsError if this process lacks one that is in use
 */
export async function followKeys(
  { db, clock }: Store,
  settings: KeySettings,
): Promise<{ keys: InstallationKeys; look: () => Promise<string> }> {
  const isToBeTold = atMostEvery(clock, MINUTE_MS);
  let first = await keysInUse(db, settings);
  if (first.facts.master_key === undefined && first.sealing !== null) {
    await claimFact(db, "master_key", null, first.sealing.id);
    first = await keysInUse(db, settings);
  }
  const problem = problemOf(first);
  if (problem !== null) throw new SettingsError(problem);
  const keys = keysOf(first.sealing?.text ?? "");
  const use = (inUse: InUse): string => {
    turnTo(keys, inUse, clock.now());
    return inUse.used.map(({ id }) => id).join(" ");
  };
  use(first);
  return {
    keys,
    async look() {
      const inUse = await keysInUse(db, settings);
      const lacking = problemOf(inUse);
      if (lacking !== null && isToBeTold())
        log("app").error("this process lacks a master key", { error: lacking });
      return use(inUse);
    },
  };
}

/** Opens the keys that are in use, for a command. @throws SettingsError if a master key in use is not there */
export async function currentKeys(store: Store, settings: KeySettings): Promise<InstallationKeys> {
  return (await followKeys(store, settings)).keys;
}

/** What to do if one key of a rotation is missing. */
export const BOTH_KEYS =
  "Set MASTER_KEY to the new key and MASTER_KEY_OLD to the old one. `postrider master-key rotate` ends a change that was interrupted";

/** Says what is wrong with the master keys of this process, and how to fix it; null if nothing is. */
export function problemOf({ sealing, rotation, used }: InUse): string | null {
  if (sealing === null) return WRONG_KEY;
  if (rotation === null || used.length === rotation.length) return null;
  return `the master key is being changed, and until that is over a process needs both keys. ${BOTH_KEYS}`;
}

/** Puts the keys in use into the rings. Without the sealing key nothing changes. */
function turnTo(rings: InstallationKeys, { sealing, used, facts }: InUse, now: number): void {
  if (sealing === null) return;
  rings.box.keys = ringOf("box", used, []);
  const kept = openKept(rings.box, facts.kept_keys, now);
  for (const purpose of PURPOSES) rings[purpose].keys = ringOf(purpose, used, kept);
}

function ringOf(purpose: Purpose, used: readonly MasterKey[], kept: readonly KeptKeys[]): KeyRing["keys"] {
  const [first = new Uint8Array(), ...others] = [
    ...used.map(({ derived }) => derived[purpose]),
    ...kept.flatMap(({ keys }) => {
      const key = keys[purpose];
      return key === undefined ? [] : [Buffer.from(key, "base64url")];
    }),
  ];
  return [first, ...others];
}
