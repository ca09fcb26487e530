import { createHash } from "node:crypto";
import type { DKIMVerifyOptions, DKIMVerifyResult } from "mailauth";
import { type BodyHasher, DkimVerifier, type SignatureField } from "mailauth/lib/dkim/dkim-verifier";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { type BodyCanonicalization, canonicalPieces, PIECE_OCTETS } from "./canonical-body.ts";
import type { CheckableMail } from "./checkable.ts";

/** The DKIM results of a message, its author, and what ARC needs. */
export type Signed = Omit<DKIMVerifyResult, "envelopeFrom">;

const CANONICALIZATIONS: readonly BodyCanonicalization[] = ["relaxed", "simple"];

/**
 * Verifies the DKIM signatures of a message with mailauth, but with our own body hashes. mailauth's relaxed hash
 * rereads an unfinished line with each chunk, so one line of 24 MiB held the thread for seconds.
 */
export async function verifyDkim(mail: CheckableMail, options: DKIMVerifyOptions): Promise<Signed> {
  const verifier = new LinearVerifier(options);
  await verifier.verify(mail);
  const { headerFrom, fromFields, results, headers, arc } = verifier;
  return { headerFrom, fromFields, results, headers, arc };
}

/** Reads the header and verifies nothing: each signature is `temperror`, and there is no ARC chain. */
export async function unverifiedDkim({ header }: CheckableMail, options: DKIMVerifyOptions): Promise<Signed> {
  const verifier = new LinearVerifier(options);
  await verifier.read(header);
  const { headerFrom, fromFields } = verifier;
  return { headerFrom, fromFields, results: verifier.unverified() };
}

/** Returns a header block, with its empty line, as mailauth reads it. */
export async function readHeaders(header: Buffer): Promise<NonNullable<Signed["headers"]>> {
  const verifier = new LinearVerifier({});
  await verifier.read(header);
  if (verifier.headers === undefined) throw new Error("mailauth has not read the header");
  return verifier.headers;
}

class LinearVerifier extends DkimVerifier {
  async verify({ header, body }: CheckableMail): Promise<void> {
    await this.read(header);
    for (const canonicalization of CANONICALIZATIONS) await this.#hash(canonicalization, body);
    await this.finalChunk();
  }

  read(header: Buffer): Promise<void> {
    return this.emitHeaders(header);
  }

  unverified(): Signed["results"] {
    return this.signatureHeaders.filter(({ type }) => type === "DKIM").map(unverified);
  }

  protected override addBodyHash(canonicalization: string, algorithm: string, length: number | ""): string {
    const key = [canonicalization, algorithm, length].join(":");
    if (!this.bodyHashes.has(key))
      this.bodyHashes.set(key, new BodyHash(canonicalization, algorithm, length));
    return key;
  }

  /** Canonicalizes the body once for all hashes of that kind. After each piece of a large body other work has a turn. */
  async #hash(canonicalization: BodyCanonicalization, body: Buffer): Promise<void> {
    const hashes = [...this.bodyHashes.values()].filter(
      (hash): hash is BodyHash => hash instanceof BodyHash && hash.canonicalization === canonicalization,
    );
    if (hashes.length === 0) return;
    for (const hash of hashes) hash.byteLength = body.length;
    for (const piece of canonicalPieces(canonicalization, body)) {
      for (const hash of hashes) hash.update(piece);
      if (body.length > PIECE_OCTETS) await yieldToEventLoop();
    }
  }
}

/** The words of the signature are left out of `info`: mailauth would have to escape them. */
function unverified({ signingDomain, selector }: SignatureField): Signed["results"][number] {
  const id = `${selector}.${signingDomain}`;
  return {
    id,
    signingDomain,
    selector,
    status: { result: "temperror" },
    info: "dkim=temperror (not checked)",
  };
}

/** A hash of the canonicalized body, or of its first octets if the signature has `l=` (RFC 6376 §3.5). */
class BodyHash implements BodyHasher {
  readonly canonicalization: string;
  byteLength = 0;
  canonicalizedLength = 0;
  bodyHashedBytes = 0;
  readonly #hash;
  readonly #most: number;

  constructor(canonicalization: string, algorithm: string, length: number | "") {
    this.canonicalization = canonicalization;
    this.#hash = createHash(algorithm);
    this.#most = length === "" ? Number.POSITIVE_INFINITY : length;
  }

  update(piece: Buffer): void {
    this.canonicalizedLength += piece.length;
    const hashed = piece.subarray(0, Math.max(0, this.#most - this.bodyHashedBytes));
    if (hashed.length === 0) return;
    this.bodyHashedBytes += hashed.length;
    this.#hash.update(hashed);
  }

  digest(encoding: "base64"): string {
    return this.#hash.digest(encoding);
  }

  /** mailauth reports the start of the MIME structure for signatures with `l=`; we have no use for it. */
  setContentType(): void {}

  getMimeStructureStart(): number {
    return 0;
  }
}
