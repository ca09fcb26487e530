import { NO_ADDRESS, normalizeAddress, oneSpelling, splitAddress } from "./addresses.ts";
import { NO_TIME, parseTime } from "./date-times.ts";
import type { ErrorCode, Issue } from "./errors.ts";
import { MAX_REPLY_TO, type SendAttachment, SendItem } from "./send-item.ts";
import { DAY_MS } from "./time-units.ts";
import { check, isDeeper, MAX_ISSUES, withoutFaults } from "./validation.ts";

/** Limits of one send; each is a setting. Sizes in bytes. */
export interface SendLimits {
  maxRecipients: number;
  maxMessageBytes: number;
  maxAttachments: number;
  maxScheduleDays: number;
}

export const MAX_BODY_PART_BYTES = 2 * 1024 * 1024;
const MAX_CUSTOM_HEADERS = 50;
export const MAX_HEADER_VALUE_BYTES = 4096;
const MAX_HEADER_NAME_CHARS = 76;
const MAX_TAGS = 20;
/** Objects and lists within one another in `data`. */
const MAX_DATA_DEPTH = 50;

/**
 * Header fields that the service writes itself: a client's would contradict the envelope or the signature. And one that
 * tells of recipients who are not to be seen.
 */
const REFUSED_HEADERS =
  /^(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|return-path|received|content-.*|mime-version|dkim-signature|arc-.*|authentication-results|resent-bcc)$/i;

/** Fields that a mail may have once (RFC 5322 §3.6, RFC 2369 §3, RFC 8058 §3.1): large receivers refuse one with two. */
const SINGLE_HEADERS = /^(?:in-reply-to|references|list-.*)$/i;

/** Whether a header field of this name is not the client's to set. */
export function isReservedHeader(name: string): boolean {
  return REFUSED_HEADERS.test(name);
}

/** RFC 5322 §2.2: printable ASCII but the colon. */
const HEADER_NAME = /^[\x21-\x39\x3b-\x7e]+$/;
const TAG = /^[A-Za-z0-9_.-]{1,256}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const CONTENT_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(?:\s*;\s*[A-Za-z0-9!#$&^_.+-]+=(?:[A-Za-z0-9!#$&^_.+-]+|"[^"\\\r\n]*"))*$/;

/** A send item that keeps all rules, with what was worked out on the way. */
export interface CheckedSend {
  item: SendItem;
  /** Milliseconds; null: now. */
  scheduledAt: number | null;
}

type Report = (param: string, message: string, code?: ErrorCode) => void;

/** A field as far as its parts have their shape; those of lists that have none are holes. */
type Shaped<Field> = Field extends (infer Entry extends object)[]
  ? Partial<Entry>[]
  : string extends keyof Field
    ? Field
    : Partial<Field>;
/** An item as far as its fields have their shape. */
type Readable = { [Name in keyof SendItem]?: Shaped<NonNullable<SendItem[Name]>> };

/**
 * Checks the shape and every rule of one send item. Returns all issues, or the item.
 * @param now milliseconds
 * @param ownHeaders how many of its headers are the service's own: the client has the whole number to himself
 */
export function checkSend(
  value: unknown,
  limits: SendLimits,
  now: number,
  ownHeaders = 0,
): CheckedSend | Issue[] {
  const issues = shapeIssues(value);
  const misshapen = new Set(issues.map(({ param }) => /^[^.[]*/.exec(param)?.[0] ?? ""));
  // It is no object, and has no fields to look at. Or there are as many issues as are told, and which other fields have
  // their shape is not known.
  if (misshapen.has("") || issues.length >= MAX_ISSUES) return issues;
  const item: Readable = withoutFaults(value as SendItem, issues);
  const report: Report = (param, message, code) => {
    if (issues.length < MAX_ISSUES) issues.push(code ? { message, param, code } : { message, param });
  };
  checkAddresses(item, limits, report);
  checkRequired(item, misshapen, report);
  checkContent(item, report);
  checkHeaders(item, MAX_CUSTOM_HEADERS + ownHeaders, report);
  checkData(item, report);
  checkTags(item, report);
  checkAttachments(item, limits, report);
  if (issues.length === 0 && encodedSize(item) > limits.maxMessageBytes)
    report("", `The encoded message is larger than ${limits.maxMessageBytes} bytes.`, "message_too_large");
  const scheduledAt = checkSchedule(item, limits, now, report);
  return issues.length > 0 ? issues : { item: value as SendItem, scheduledAt };
}

/** Breaches of the schema. A list of recipients without any is a missing field. */
function shapeIssues(value: unknown): Issue[] {
  return check(SendItem, value).map((issue) =>
    issue.param === "to" && Array.isArray((value as Readable).to)
      ? { message: "At least one recipient is required.", param: "to", code: "missing_field" }
      : issue,
  );
}

function checkAddresses(item: Readable, limits: SendLimits, report: Report): void {
  if (isNoAddress(item.from?.email)) report("from.email", NO_ADDRESS, "invalid_from");
  checkName(item.from?.name, "from.name", report);
  const { maxRecipients } = limits;
  const lists = [
    ["to", maxRecipients],
    ["cc", maxRecipients],
    ["bcc", maxRecipients],
    ["replyTo", MAX_REPLY_TO],
  ] as const;
  for (const [field, most] of lists) {
    // A body has room for two million addresses, which would take seconds.
    item[field]?.slice(0, most).forEach((address, index) => {
      const param = `${field}[${index}]`;
      if (isNoAddress(address.email)) report(`${param}.email`, NO_ADDRESS, "invalid_email");
      checkName(address.name, `${param}.name`, report);
    });
  }
  const count = (item.to?.length ?? 0) + (item.cc?.length ?? 0) + (item.bcc?.length ?? 0);
  if (count > maxRecipients)
    report("to", `At most ${maxRecipients} recipients over to, cc and bcc.`, "too_many_recipients");
}

function isNoAddress(email: string | undefined): boolean {
  return email !== undefined && normalizeAddress(email) === null;
}

/** Header injection: a display name ends up in a header field. */
function checkName(name: string | undefined, param: string, report: Report): void {
  if (name !== undefined && hasControls(name)) report(param, "Must not contain control characters.");
}

function hasControls(text: string): boolean {
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(text);
}

/** Fields that only a template stands in for; one that is there in another shape is no missing one. */
function checkRequired(item: Readable, misshapen: ReadonlySet<string>, report: Report): void {
  const lacks = (...fields: (keyof SendItem)[]): boolean =>
    fields.every((field) => item[field] === undefined && !misshapen.has(field));
  if (lacks("subject", "templateId"))
    report("subject", "Required unless templateId is given.", "missing_field");
  if (lacks("html", "text", "templateId"))
    report("html", "One of html, text or templateId is required.", "missing_field");
}

function checkContent({ subject, html, text }: Readable, report: Report): void {
  if (subject !== undefined) {
    if (hasControls(subject)) report("subject", "Must not contain line breaks or control characters.");
  }
  for (const [param, part] of [
    ["html", html],
    ["text", text],
  ] as const) {
    if (part !== undefined && Buffer.byteLength(part) > MAX_BODY_PART_BYTES)
      report(param, `At most ${MAX_BODY_PART_BYTES} bytes.`, "message_too_large");
    // The database gives a text back up to its first NUL.
    if (part?.includes("\0")) report(param, "Must not contain NUL.");
  }
}

function checkData(item: Readable, report: Report): void {
  if (isDeeper(item.data, MAX_DATA_DEPTH)) report("data", `Nested more than ${MAX_DATA_DEPTH} deep.`);
}

function checkHeaders(item: Readable, most: number, report: Report): void {
  const headers = Object.entries(item.headers ?? {});
  if (headers.length > most) report("headers", `At most ${MAX_CUSTOM_HEADERS} headers.`, "invalid_header");
  const named = new Set<string>();
  for (const [name, value] of headers.slice(0, most)) {
    const key = name.toLowerCase();
    const again = named.has(key) && SINGLE_HEADERS.test(name);
    named.add(key);
    const param = `headers.${name.slice(0, MAX_HEADER_NAME_CHARS)}`;
    if (!HEADER_NAME.test(name) || name.length > MAX_HEADER_NAME_CHARS)
      report(param, "Not a header name.", "invalid_header");
    else if (isReservedHeader(name)) report(param, "This header is not yours to set.", "invalid_header");
    else if (again) report(param, "Named twice, in another case.", "invalid_header");
    else if (/[\r\n\0]/.test(value)) report(param, "Must not contain CR, LF or NUL.", "invalid_header");
    else if (Buffer.byteLength(value) > MAX_HEADER_VALUE_BYTES)
      report(param, `At most ${MAX_HEADER_VALUE_BYTES} bytes.`, "invalid_header");
  }
}

function checkTags(item: Readable, report: Report): void {
  const tags = item.tags ?? [];
  if (tags.length > MAX_TAGS) report("tags", `At most ${MAX_TAGS} tags.`);
  tags.slice(0, MAX_TAGS).forEach((tag, index) => {
    for (const field of ["name", "value"] as const)
      if (!TAG.test(tag[field] ?? "-"))
        report(`tags[${index}].${field}`, "Must be 1 to 256 of A-Z a-z 0-9 _ . -");
  });
}

function checkAttachments(item: Readable, limits: SendLimits, report: Report): void {
  for (const { param, message, code } of attachmentIssues(item.attachments ?? [], limits.maxAttachments))
    report(param, message, code);
}

/** What is wrong with attachments as posted, beyond their shape. */
export function attachmentIssues(
  attachments: readonly Partial<SendAttachment>[],
  maxAttachments: number,
): Issue[] {
  const issues: Issue[] = [];
  const report = (param: string, message: string) =>
    issues.push({ param, message, code: "invalid_attachment" });
  if (attachments.length > maxAttachments) report("attachments", `At most ${maxAttachments} attachments.`);
  attachments.slice(0, maxAttachments).forEach((attachment, index) => {
    const param = `attachments[${index}]`;
    const { filename = "", content = "", contentType, contentId } = attachment;
    if (hasControls(filename)) report(`${param}.filename`, "Must not contain control characters.");
    if (content.length % 4 !== 0 || !BASE64.test(content)) report(`${param}.content`, "Not base64.");
    if (contentType !== undefined && !CONTENT_TYPE.test(contentType))
      report(`${param}.contentType`, "Not a MIME type.");
    if (contentId !== undefined && !/^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(contentId))
      report(`${param}.contentId`, "Must be printable ASCII without spaces or angle brackets.");
  });
  return issues;
}

/** The time a send is scheduled for, in milliseconds, or what is wrong with it. `now` in milliseconds. */
export function readSchedule(text: string, maxScheduleDays: number, now: number): number | Issue {
  const param = "scheduledAt";
  const at = parseTime(text);
  if (at === null) return { param, message: NO_TIME };
  return at > now + maxScheduleDays * DAY_MS
    ? { param, message: `At most ${maxScheduleDays} days ahead.`, code: "schedule_out_of_range" }
    : at;
}

function checkSchedule(item: Readable, limits: SendLimits, now: number, report: Report): number | null {
  if (item.scheduledAt === undefined) return null;
  const at = readSchedule(item.scheduledAt, limits.maxScheduleDays, now);
  if (typeof at === "number") return at > now ? at : null;
  report(at.param, at.message, at.code);
  return null;
}

/** Octets the message will take on the wire, near enough to refuse one that cannot fit: base64 with its line ends. */
function encodedSize(item: Readable): number {
  let size = Buffer.byteLength(item.html ?? "") + Buffer.byteLength(item.text ?? "");
  for (const attachment of item.attachments ?? [])
    size += Math.ceil((attachment.content?.length ?? 0) * (78 / 76));
  return size;
}

/** One recipient of a send: each address once, in the kind where it first stands. */
export interface Addressee {
  email: string;
  /** What the address is known by in lists. */
  key: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
}

/** The recipients a send goes to, normalized (domain in A-labels), without doubles. */
export function addresseesOf(item: SendItem): Addressee[] {
  const seen = new Map<string, Addressee>();
  for (const kind of ["to", "cc", "bcc"] as const) {
    for (const address of item[kind] ?? []) {
      const split = splitAddress(address.email);
      const email = split === null ? address.email : `${split.local}@${split.domain}`;
      const key = oneSpelling(email);
      if (!seen.has(key)) seen.set(key, { email, key, domain: split?.domain ?? "", kind });
    }
  }
  return [...seen.values()];
}
