import { isAscii } from "node:buffer";
import type { ComposedMail } from "../composing/compose.ts";
import { headerField } from "../composing/header-fields.ts";
import { fieldsOf, findHeaderEnd, type RawField } from "../reading/raw-headers.ts";
import { type ChangeText, changeTexts } from "./change-texts.ts";
import { fitForWire } from "./fit-wire.ts";
import { headerOctets } from "./header.ts";

/** A message that was submitted whole, without our control fields. */
export interface WholeMail {
  bytes: Uint8Array;
  /** True if the client gave the SMTPUTF8 parameter. */
  smtpUtf8: boolean;
}

export interface AddedFields {
  /** Added if the message has none: with angle brackets, and milliseconds since the epoch. */
  messageId: string;
  date: number;
  /** They replace fields of the message of the same name. */
  own: readonly (readonly [name: string, value: string])[];
  /** Further fields, each added if the message has none of that name. */
  unlessGiven?: readonly (readonly [name: string, value: string])[];
  /** The signatures that will be made. Those of the message under the same domain and selector are removed. */
  signers: readonly { domain: string; selector: string }[];
}

/**
 * Returns the bytes to send: those of the message, with our fields and with changed text parts. A message is sent
 * under SMTPUTF8 (RFC 6531) if its client said so and its header needs it.
 */
export function outgoingMail(
  { bytes, smtpUtf8 }: WholeMail,
  added: AddedFields,
  change: ChangeText | null,
): ComposedMail {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { header, body } = findHeaderEnd(whole);
  const fields = fieldsOf(whole.toString("latin1", 0, header));
  const head = headerOctets(withAdded(fields, added));
  const raw = Buffer.concat([head, whole.subarray(body)]);
  return {
    raw: fitForWire(change === null ? raw : changeTexts(raw, change)),
    smtpUtf8: smtpUtf8 && !isAscii(head),
  };
}

function withAdded(fields: readonly RawField[], added: AddedFields): RawField[] {
  const { messageId, date, own, unlessGiven = [] } = added;
  const replaced = new Set(own.map(([name]) => name.toLowerCase()));
  const kept = fields.filter((field) => !replaced.has(field.name) && !isInOurName(field, added));
  const has = (name: string): boolean => kept.some((field) => field.name === name);
  const further: [string, string][] = [
    ...(has("date") ? [] : [["Date", dateText(date)] as [string, string]]),
    ...(has("message-id") ? [] : [["Message-ID", messageId] as [string, string]]),
    ...own.map(([name, value]): [string, string] => [name, value]),
    ...unlessGiven.flatMap(([name, value]): [string, string][] =>
      has(name.toLowerCase()) ? [] : [[name, value]],
    ),
  ];
  return [...kept, ...further.map(([name, value]) => fieldOf(name, value))];
}

/** Returns whether a field is a signature under one of our keys. Only we have them, so it is stale or forged. */
function isInOurName({ name, line }: RawField, { signers }: AddedFields): boolean {
  if (name !== "dkim-signature") return false;
  // RFC 6376 §3.2: white space around tags and in folds has no meaning.
  const tags = line
    .slice(line.indexOf(":") + 1)
    .replace(/\s+/g, "")
    .toLowerCase()
    .split(";");
  return signers.some(
    ({ domain, selector }) => tags.includes(`d=${domain}`) && tags.includes(`s=${selector.toLowerCase()}`),
  );
}

function fieldOf(name: string, value: string): RawField {
  return { name: name.toLowerCase(), line: headerField(name, value).replace(/\r\n$/, "") };
}

/** RFC 5322 §3.3. `toUTCString` ends with the obsolete zone "GMT". */
function dateText(date: number): string {
  return new Date(date).toUTCString().replace(/GMT$/, "+0000");
}
