import type { Key } from "../../core/crypto/key-ring.ts";
import { randomBytes } from "node:crypto";
import { seal } from "../../core/crypto/secretbox.ts";
import { invalid } from "../../core/errors.ts";
import type { RelayProviderName } from "../../core/messages/relay-providers.ts";
import { type ProofField, RELAYS } from "../../mail/relays/providers.ts";

/** Bytes of a secret that the service makes. */
const SECRET_BYTES = 24;

/** What a request gives to prove the events of a provider. */
export type GivenProof = { provider: RelayProviderName } & { [Field in ProofField]?: string | undefined };

export interface SealedProof {
  sealed: string;
  /** The secret that the URL of the events has; null: it has none. */
  secret: string | null;
}

/**
 * Seals what proves the events of a provider. A secret that is missing is made.
 * @throws AppError 422 if the proof is missing, is another provider's, or has another form
 */
export function sealProof(given: GivenProof, boxKey: Key): SealedProof {
  const { provider } = given;
  const { proof: field, isProof, form } = RELAYS[provider];
  const fields = Object.values(RELAYS).map((relay) => relay.proof);
  const foreign = fields.find((name) => name !== field && given[name] !== undefined);
  if (foreign !== undefined) throw invalid(`events.${foreign}`, `is not for ${provider}.`);
  const made = field === "secret" ? randomBytes(SECRET_BYTES).toString("base64url") : null;
  const proof = given[field] ?? made;
  if (proof === null)
    throw invalid(`events.${field}`, `is required for ${provider}: ${form}.`, "missing_field");
  if (!isProof(proof)) throw invalid(`events.${field}`, `must be ${form}.`);
  return { sealed: seal(boxKey, proof), secret: field === "secret" ? proof : null };
}
