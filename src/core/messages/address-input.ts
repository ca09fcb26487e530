import { type Static, Type } from "@sinclair/typebox";
import { ADDRESS_EXPECTED, type Mailbox, normalizeAddress } from "../addresses.ts";
import { type ErrorCode, invalid, type Issue } from "../errors.ts";
import { isLonger } from "../validation.ts";

/** Maximum characters of a display name. */
export const MAX_NAME_CHARS = 320;
/**
 * Maximum characters of an address in text form. A name takes twice its length if each character is escaped.
 */
const MAX_TEXT_CHARS = 1000;

const EMAIL_EXAMPLE = "ana@example.com";

const AddressObject = Type.Object(
  {
    email: Type.String({
      description: "Email address.",
      expected: "an email address",
      examples: [EMAIL_EXAMPLE],
    }),
    name: Type.Optional(
      Type.String({ description: "Display name.", maxLength: MAX_NAME_CHARS, examples: ["Ana"] }),
    ),
  },
  {
    title: "SendAddress",
    description: "An address with an optional display name.",
    expected: "an address",
    examples: [{ email: EMAIL_EXAMPLE }],
  },
);
const AddressText = Type.String({
  maxLength: MAX_TEXT_CHARS,
  description: "`ana@example.com` or `Ana <ana@example.com>`.",
  expected: "an address",
  examples: [EMAIL_EXAMPLE, `Ana <${EMAIL_EXAMPLE}>`],
});

/** One address as a client may write it: an object, or a string with or without a display name. */
export const Address = Type.Union([AddressText, AddressObject], {
  expected: "an address",
  examples: [EMAIL_EXAMPLE, { email: EMAIL_EXAMPLE }],
});
export type Address = Static<typeof Address>;

/** Returns the schema of a field that takes one address or a list of them. */
export function AddressList(bounds: { minItems?: number; maxItems?: number; description?: string } = {}) {
  const { description, ...items } = bounds;
  return Type.Union([AddressText, AddressObject, Type.Array(Address, items)], {
    expected: "an address or a list of addresses",
    examples: [EMAIL_EXAMPLE, [EMAIL_EXAMPLE]],
    ...(description === undefined ? {} : { description }),
  });
}
export type AddressList = Address | Address[];

/**
 * Reads an address in text form: `ana@example.com`, `<ana@example.com>` or `Ana <ana@example.com>`. The name may be in
 * quotes. Returns null if the text is not one address that mail can be sent to.
 */
export function readAddress(text: string): Mailbox | null {
  const trimmed = text.trim();
  const open = trimmed.endsWith(">") ? trimmed.lastIndexOf("<") : -1;
  const email = open < 0 ? trimmed : trimmed.slice(open + 1, -1).trim();
  const name = open < 0 ? "" : readName(trimmed.slice(0, open).trim());
  if (name === null || normalizeAddress(email) === null) return null;
  return name === "" ? { email } : { email, name };
}

/** Returns the display name without its quotes. Returns null if the text holds more than a name, such as an address. */
function readName(text: string): string | null {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/s.exec(text)?.[1];
  if (quoted !== undefined) return quoted.replace(/\\(.)/gs, "$1").trim();
  // In `a@b.example, Ben <c@d.example>` the first recipient must not silently become a name.
  return /[<>]|@.*[,;]/s.test(text) ? null : text;
}

/** Returns an address that has no issues, as an object. */
export function mailboxOf(address: Address): Mailbox {
  return typeof address === "string" ? (readAddress(address) ?? { email: address }) : address;
}

/** Returns the addresses of a field without issues. A field that is not given has none. */
export function mailboxesOf(field: AddressList | undefined): Mailbox[] {
  return entriesOf(field).map(mailboxOf);
}

/** Returns the entries of a field that takes one or a list. */
export function entriesOf<Entry extends object>(
  field: string | Entry | (string | Entry)[] | undefined,
): (string | Entry)[] {
  if (field === undefined) return [];
  return Array.isArray(field) ? field : [field];
}

/** An address that fits its schema, without the parts that do not. */
export type PartialAddress = string | { email?: string | undefined; name?: string | undefined };

/** Returns the issues of the first `most` addresses of a field, beyond their shape. `field` is its JSON path. */
export function addressListIssues(
  value: PartialAddress | PartialAddress[] | undefined,
  field: string,
  most: number,
): Issue[] {
  if (!Array.isArray(value)) return value === undefined ? [] : addressIssues(value, field);
  const issues: Issue[] = [];
  value.slice(0, most).forEach((address, index) => {
    issues.push(...addressIssues(address, `${field}[${index}]`));
  });
  return issues;
}

/** Returns the issues of one address beyond its shape. `param` is its JSON path. */
export function addressIssues(
  address: PartialAddress,
  param: string,
  code: ErrorCode = "invalid_email",
): Issue[] {
  if (typeof address === "string") {
    const read = readAddress(address);
    return read === null ? [{ param, message: textExpected(address), code }] : nameIssues(read.name, param);
  }
  const { email, name } = address;
  const unreadable = email !== undefined && normalizeAddress(email) === null;
  return [
    ...(unreadable ? [{ param: `${param}.email`, message: ADDRESS_EXPECTED, code }] : []),
    ...nameIssues(name, `${param}.name`),
  ];
}

/** Returns the normalized form of a bare address. @throws AppError 422 `invalid_email` for the field `param` if it is none */
export function requiredAddress(text: string, param: string): string {
  const email = normalizeAddress(text);
  if (email === null) throw invalid(param, ADDRESS_EXPECTED, "invalid_email");
  return email;
}

function textExpected(text: string): string {
  return text.indexOf("@") === text.lastIndexOf("@")
    ? 'must be an address, such as "ana@example.com" or "Ana <ana@example.com>".'
    : 'must be one address. Several are a list, such as ["ana@example.com","ben@example.com"].';
}

/** Refuses controls in a display name, which ends up in a header field (header injection). */
function nameIssues(name: string | undefined, param: string): Issue[] {
  if (name === undefined) return [];
  if (hasControls(name)) return [{ param, message: "must not contain control characters." }];
  return isLonger(name, MAX_NAME_CHARS)
    ? [{ param, message: `must have a name of at most ${MAX_NAME_CHARS} characters.` }]
    : [];
}

/** Returns whether the value of a header field has control characters other than a tab. */
export function hasControls(text: string): boolean {
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(text);
}
