import { isAscii } from "node:buffer";
import type { ForwardedCopy } from "../../core/messages/forwarded.ts";
import { FORWARD_FIELD, forwarderName, forwardersIn, MAX_FORWARD_HOPS } from "../../core/rules/forwarding.ts";
import type { DkimSigner } from "../auth/dkim.ts";
import type { ComposedMail } from "../composing/compose.ts";
import { headerField } from "../composing/header-fields.ts";
import { fieldValue, fieldsOf, findHeaderEnd } from "../reading/raw-headers.ts";
import type { WholeMail } from "./outgoing.ts";

/** The domain that seals a forward, with its keys; null: it has none any more. */
export type Sealing = { domain: string; keys: readonly DkimSigner[] } | null;

/**
 * Returns a received message as it is forwarded. Its octets are as they came, so its own DKIM signatures hold, also with long lines or octets
 * beyond ASCII. Above them are our trace and the field that ends loops, and on top an ARC set.
 * @param date milliseconds
 */
export async function forwardedMail(
  { bytes, smtpUtf8 }: WholeMail,
  { inbox, trace, arc }: ForwardedCopy,
  sealing: Sealing,
  date: number,
): Promise<ComposedMail> {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { header } = findHeaderEnd(whole);
  const before = fieldsOf(whole.toString("latin1", 0, header)).find(
    ({ name }) => name === FORWARD_FIELD.toLowerCase(),
  );
  const by = [forwarderName(inbox), ...forwardersIn(before === undefined ? undefined : fieldValue(before))];
  const own = fieldsOf(Buffer.from(trace, "utf8").toString("latin1"));
  const received = own.filter(({ name }) => name === "received").map(({ line }) => `${line}\r\n`);
  const results = own.find(({ name }) => name === "authentication-results");
  const fields = headerField(FORWARD_FIELD, by.slice(0, MAX_FORWARD_HOPS).join(", ")) + received.join("");
  const raw = Buffer.concat([Buffer.from(fields, "latin1"), whole]);
  // Loaded when it is needed: the library of ARC takes two fifths of the start of the threads that make mail.
  const { arcSeal } = await import("../auth/arc-seal.ts");
  const key = sealingKey(sealing);
  const seal =
    sealing === null || key === undefined || results === undefined
      ? ""
      : await arcSeal({
          raw,
          // Folded as it is, because it may be long.
          results: results.line.slice(results.line.indexOf(":") + 1).trim(),
          chain: arc,
          domain: sealing.domain,
          key,
          signedAt: date,
        });
  return {
    raw: Buffer.concat([Buffer.from(seal, "latin1"), raw]),
    smtpUtf8: smtpUtf8 && !isAscii(whole.subarray(0, header)),
  };
}

/** Returns the key to seal with: an RSA key, which all software knows, if the domain has one. */
function sealingKey(sealing: Sealing): DkimSigner | undefined {
  const own = sealing?.keys.filter(({ domain }) => domain === undefined) ?? [];
  return own.find(({ privateKey }) => privateKey.asymmetricKeyType === "rsa") ?? own[0];
}
