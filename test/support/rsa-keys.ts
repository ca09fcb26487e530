import { type MakeRsaKey, newRsaKey } from "../../src/core/crypto/rsa-key.ts";

/** Number of different keys: more than any test compares with each other. */
const DIFFERENT = 16;

const made: ReturnType<MakeRsaKey>[] = [];
let asked = 0;

/** Gives real keys, and after some the same ones again, because making one takes longer than most tests. */
export const recurringRsaKey: MakeRsaKey = () => {
  const at = asked++ % DIFFERENT;
  const key = made[at] ?? newRsaKey();
  made[at] = key;
  return key;
};
