import { createHash } from "node:crypto";
import { createSeal, getARChain } from "mailauth/lib/arc";
import { findHeaderEnd } from "../reading/raw-headers.ts";
import { canonicalPieces } from "./canonical-body.ts";
import { MAX_CHECKED_HEADER_LINES, MAX_CHECKED_HEADER_OCTETS } from "./checkable.ts";
import type { DkimSigner } from "./dkim.ts";
import { readHeaders } from "./verify-dkim.ts";

/** The facts that a seal states, and the key that signs it. */
export interface ArcSealing {
  /** The message with all fields that it leaves with, CRLF line ends. */
  raw: Buffer;
  /** Our findings at its arrival, as the value of Authentication-Results (RFC 8601). */
  results: string;
  /** The result of its ARC chain then. */
  chain: string;
  /** The `d=` domain, A-labels. */
  domain: string;
  key: Pick<DkimSigner, "selector" | "privateKey">;
  /** Milliseconds, so that each attempt makes the same seal. */
  signedAt: number;
}

/** Results of a chain that a further seal may follow (RFC 8617 §5.1). */
const SEALABLE: ReadonlySet<string> = new Set(["none", "pass", "fail"]);

/**
 * Returns the fields of a further ARC set (RFC 8617) to put in front of a message. Returns "" if there can be none, and the
 * message leaves without: its chain was not checked, is sealed as failed, or has 50 sets. A header that is too large to be checked is not sealed.
 */
export async function arcSeal({ raw, results, chain, domain, key, signedAt }: ArcSealing): Promise<string> {
  const { header, body } = findHeaderEnd(raw);
  const block = raw.subarray(0, body);
  if (!SEALABLE.has(chain) || header > MAX_CHECKED_HEADER_OCTETS || hasMoreLines(block)) return "";
  const headers = await readHeaders(block);
  const sets = chainIn(headers);
  if (sets === null && chain === "pass") return "";
  const hash = createHash("sha256");
  for (const piece of canonicalPieces("relaxed", raw.subarray(body))) hash.update(piece);
  const sealed = await createSeal(false, {
    headers,
    arc: { chain: sets ?? false },
    seal: {
      signingDomain: domain,
      selector: key.selector,
      privateKey: key.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      signTime: new Date(signedAt),
      authResults: results,
      cv: chain,
      bodyHash: hash.digest("base64"),
    },
  });
  return sealed.headers.map((field) => `${field}\r\n`).join("");
}

function chainIn(headers: Awaited<ReturnType<typeof readHeaders>>): ReturnType<typeof getARChain> | null {
  try {
    return getARChain(headers) || null;
  } catch {
    return null;
  }
}

function hasMoreLines(block: Buffer): boolean {
  let lines = 0;
  for (let at = block.indexOf("\n"); at >= 0; at = block.indexOf("\n", at + 1))
    if (++lines > MAX_CHECKED_HEADER_LINES) return true;
  return false;
}
