import { type ErrorCode, type Issue, validationError } from "../errors.ts";
import {
  addressIssues,
  addressListIssues,
  entriesOf,
  hasControls,
  type PartialAddress,
} from "./address-input.ts";
import { calendarIssues } from "./calendar.ts";
import { MAX_REPLY_TO, type ReadItem, readItem, type SendAttachment, SendItem } from "./send-item.ts";
import { itemFieldIssues } from "./decisive-fields.ts";
import { readSchedule } from "../time/schedule.ts";
import { SECOND_MS } from "../time/units.ts";
import { check, isLarger, MAX_ISSUES, withoutFaults } from "../validation.ts";

/** Limits of one send, all of them settings. Sizes are in bytes. */
export interface SendLimits {
  maxRecipients: number;
  maxMessageBytes: number;
  maxAttachments: number;
  maxScheduleDays: number;
}

export const MAX_BODY_PART_BYTES = 2 * 1024 * 1024;
export const MAX_CUSTOM_HEADERS = 50;
export const MAX_HEADER_VALUE_BYTES = 4096;
export const MAX_HEADER_NAME_CHARS = 76;
const MAX_TAGS = 20;
/** Maximum bytes of `data` as JSON. A value that fits into a body part fits here. */
export const MAX_DATA_BYTES = MAX_BODY_PART_BYTES;

/**
 * Header fields that a client may not set. The service writes them itself, and another value would contradict the
 * envelope or the signature. Bcc would reveal recipients who must stay hidden.
 */
const REFUSED_HEADERS =
  /^(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|return-path|received|content-.*|mime-version|dkim-signature|arc-.*|authentication-results|resent-bcc)$/i;

/**
 * Fields that a message may have once (RFC 5322 §3.6, RFC 2369 §3, RFC 8058 §3.1). Large receivers refuse a message
 * with two.
 */
const SINGLE_HEADERS = /^(?:in-reply-to|references|list-.*)$/i;

/** Returns whether a client may not set a header field with this name. */
export function isReservedHeader(name: string): boolean {
  return REFUSED_HEADERS.test(name);
}

/** RFC 5322 §2.2: printable ASCII without the colon. */
const HEADER_NAME = /^[\x21-\x39\x3b-\x7e]+$/;
const TAG = /^[A-Za-z0-9_.-]{1,256}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const CONTENT_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(?:\s*;\s*[A-Za-z0-9!#$&^_.+-]+=(?:[A-Za-z0-9!#$&^_.+-]+|"[^"\\\r\n]*"))*$/;

/** A send item that follows all rules, with its parsed time. */
export interface CheckedSend {
  item: ReadItem;
  /** Milliseconds. Null: send now. */
  scheduledAt: number | null;
}

type Report = (param: string, message: string, code?: ErrorCode) => void;

/** A field whose parts may be missing because they have a wrong shape. Such entries of lists are holes. */
type Shaped<Field> = Field extends (infer Entry extends object)[]
  ? Partial<Entry>[]
  : string extends keyof Field
    ? Field
    : Partial<Field>;
/** A send item without the fields that have a wrong shape. */
type Readable = {
  [Name in keyof SendItem]?: Name extends "from"
    ? PartialAddress
    : Name extends "to" | "cc" | "bcc" | "replyTo"
      ? PartialAddress | PartialAddress[]
      : Shaped<NonNullable<SendItem[Name]>>;
};

/** Checks a send by all rules; see `checkSend`. @throws AppError 422 with every issue */
export function checkedSend(...asked: Parameters<typeof checkSend>): CheckedSend {
  const result = checkSend(...asked);
  if (Array.isArray(result)) throw validationError(result);
  return result;
}

/**
 * Checks the shape and every rule of one send item. Returns all issues, or the item.
 * @param now milliseconds
 * @param ownHeaders headers of the item that the service added; they do not count against the client's limit
 */
export function checkSend(
  value: unknown,
  limits: SendLimits,
  now: number,
  ownHeaders = 0,
): CheckedSend | Issue[] {
  const issues = [...itemFieldIssues(value), ...shapeIssues(value)].slice(0, MAX_ISSUES);
  const misshapen = new Set(issues.map(({ param }) => /^[^.[]*/.exec(param)?.[0] ?? ""));
  // Either the value is not an object and has no fields, or the list of issues is full, so the shape of other fields
  // is not known.
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
  checkCalendar(item, report);
  if (issues.length === 0 && encodedSize(item) > limits.maxMessageBytes)
    report("", `must encode to a message of at most ${limits.maxMessageBytes} bytes.`, "message_too_large");
  const scheduledAt = checkSchedule(item, limits, now, report);
  return issues.length > 0 ? issues : { item: readItem(value as SendItem), scheduledAt };
}

/** Returns the issues of the shape. If the list of recipients is empty, it counts as a missing field. */
function shapeIssues(value: unknown): Issue[] {
  return check(SendItem, value).map((issue) =>
    issue.param === "to" && Array.isArray((value as Readable).to)
      ? { ...issue, code: "missing_field" as const }
      : issue,
  );
}

function checkAddresses(item: Readable, limits: SendLimits, report: Report): void {
  const { maxRecipients } = limits;
  // A body may hold two million addresses. Checking them all would take seconds.
  const issues = [
    ...(item.from === undefined ? [] : addressIssues(item.from, "from", "invalid_from")),
    ...addressListIssues(item.to, "to", maxRecipients),
    ...addressListIssues(item.cc, "cc", maxRecipients),
    ...addressListIssues(item.bcc, "bcc", maxRecipients),
    ...addressListIssues(item.replyTo, "replyTo", MAX_REPLY_TO),
  ];
  for (const { param, message, code } of issues) report(param, message, code);
  const lists = [item.to, item.cc, item.bcc];
  if (lists.reduce((count, list) => count + entriesOf(list).length, 0) > maxRecipients)
    report(
      "to",
      `must have at most ${maxRecipients} recipients, together with cc and bcc.`,
      "too_many_recipients",
    );
}

/** Reports fields that may only be missing if there is a template. A field with a wrong shape is not missing. */
function checkRequired(item: Readable, misshapen: ReadonlySet<string>, report: Report): void {
  const lacks = (...fields: (keyof SendItem)[]): boolean =>
    fields.every((field) => item[field] === undefined && !misshapen.has(field));
  if (lacks("subject", "templateId"))
    report("subject", "is required, unless templateId is given.", "missing_field");
  if (lacks("html", "text", "templateId"))
    report("html", "is required, unless text or templateId is given.", "missing_field");
  else if (wouldBeBlank(item, misshapen))
    report(
      "html",
      "must not be blank, unless there is a text part that is not blank or an attachment.",
      "missing_field",
    );
}

/** Returns whether a message would show nothing. If it has a template, that is known only when it is rendered. */
function wouldBeBlank(item: Readable, misshapen: ReadonlySet<string>): boolean {
  const shown = ["html", "text", "templateId", "attachments"].some((field) => misshapen.has(field));
  if (shown || item.templateId !== undefined || (item.attachments?.length ?? 0) > 0) return false;
  return isBlank(item.html) && isBlank(item.text);
}

/** Returns whether a part of a message would show nothing. */
export function isBlank(part: string | null | undefined): boolean {
  return part === null || part === undefined || part.trim() === "";
}

function checkContent({ subject, html, text }: Readable, report: Report): void {
  if (subject !== undefined) {
    if (hasControls(subject)) report("subject", "must not contain line breaks or control characters.");
  }
  for (const [param, part] of [
    ["html", html],
    ["text", text],
  ] as const) {
    if (part !== undefined && Buffer.byteLength(part) > MAX_BODY_PART_BYTES)
      report(param, `must have at most ${MAX_BODY_PART_BYTES} bytes.`, "message_too_large");
    // The database returns a string only up to its first NUL.
    if (part?.includes("\0")) report(param, "must not contain NUL.");
  }
}

function checkData(item: Readable, report: Report): void {
  if (isLarger(item.data, MAX_DATA_BYTES))
    report("data", `must have at most ${MAX_DATA_BYTES} bytes as JSON.`, "message_too_large");
}

function checkHeaders(item: Readable, most: number, report: Report): void {
  const headers = Object.entries(item.headers ?? {});
  if (headers.length > most)
    report("headers", `must have at most ${MAX_CUSTOM_HEADERS} headers.`, "invalid_header");
  const named = new Set<string>();
  for (const [name, value] of headers.slice(0, most)) {
    const key = name.toLowerCase();
    const again = named.has(key) && SINGLE_HEADERS.test(name);
    named.add(key);
    const param = `headers.${name.slice(0, MAX_HEADER_NAME_CHARS)}`;
    if (!HEADER_NAME.test(name) || name.length > MAX_HEADER_NAME_CHARS)
      report(param, 'must be a header name, such as "X-Order".', "invalid_header");
    else if (isReservedHeader(name))
      report(param, "must not be set, because the service writes this header.", "invalid_header");
    else if (again) report(param, "must not be given twice in different case.", "invalid_header");
    else if (!/[^\s\x00-\x1f\x7f]/.test(value))
      report(param, "must have a value. Leave the header out to send none.", "invalid_header");
    else if (/[\r\n\0]/.test(value)) report(param, "must not contain CR, LF or NUL.", "invalid_header");
    else if (Buffer.byteLength(value) > MAX_HEADER_VALUE_BYTES)
      report(param, `must have at most ${MAX_HEADER_VALUE_BYTES} bytes.`, "invalid_header");
  }
}

function checkTags(item: Readable, report: Report): void {
  for (const { param, message, code } of tagIssues(item.tags ?? [])) report(param, message, code);
}

/** Returns the issues of tags, beyond their shape. */
export function tagIssues(tags: readonly Partial<NonNullable<SendItem["tags"]>[number]>[]): Issue[] {
  const issues: Issue[] = [];
  if (tags.length > MAX_TAGS) issues.push({ param: "tags", message: `must have at most ${MAX_TAGS} tags.` });
  const message = 'must be 1 to 256 letters, digits and _ . - such as "spring-sale".';
  tags.slice(0, MAX_TAGS).forEach((tag, index) => {
    for (const field of ["name", "value"] as const)
      if (!TAG.test(tag[field] ?? "-")) issues.push({ param: `tags[${index}].${field}`, message });
  });
  return issues;
}

function checkAttachments(item: Readable, limits: SendLimits, report: Report): void {
  for (const { param, message, code } of attachmentIssues(item.attachments ?? [], limits.maxAttachments))
    report(param, message, code);
}

function checkCalendar({ calendar }: Readable, report: Report): void {
  if (calendar?.content === undefined) return;
  for (const { param, message, code } of calendarIssues(calendar)) report(param, message, code);
}

/** Returns the issues of attachments, beyond their shape. */
export function attachmentIssues(
  attachments: readonly Partial<SendAttachment>[],
  maxAttachments: number,
): Issue[] {
  const issues: Issue[] = [];
  const report = (param: string, message: string) =>
    issues.push({ param, message, code: "invalid_attachment" });
  if (attachments.length > maxAttachments)
    report("attachments", `must have at most ${maxAttachments} attachments.`);
  attachments.slice(0, maxAttachments).forEach((attachment, index) => {
    const param = `attachments[${index}]`;
    const { filename = "", content = "", contentType, contentId } = attachment;
    if (hasControls(filename)) report(`${param}.filename`, "must not contain control characters.");
    if (content.length % 4 !== 0 || !BASE64.test(content))
      report(`${param}.content`, 'must be padded base64 without line breaks, such as "SGVsbG8=".');
    if (contentType !== undefined && !CONTENT_TYPE.test(contentType))
      report(`${param}.contentType`, 'must be a MIME type, such as "text/plain".');
    if (contentId !== undefined && !/^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(contentId))
      report(
        `${param}.contentId`,
        'must be printable ASCII without spaces or angle brackets, such as "logo".',
      );
  });
  return issues;
}

function checkSchedule(item: Readable, limits: SendLimits, now: number, report: Report): number | null {
  const { undoSeconds = 0 } = item;
  if (item.scheduledAt === undefined) return undoSeconds === 0 ? null : now + undoSeconds * SECOND_MS;
  if (item.undoSeconds !== undefined)
    report(
      "undoSeconds",
      "must be left out together with scheduledAt, which can be canceled until its time.",
    );
  const at = readSchedule(item.scheduledAt, limits.maxScheduleDays, now);
  if (typeof at === "number") return at > now ? at : null;
  report(at.param, at.message, at.code);
  return null;
}

/**
 * Estimates the octets of the message on the wire (base64, with line ends), so that one that cannot fit is refused.
 */
function encodedSize(item: Readable): number {
  let size = Buffer.byteLength(item.html ?? "") + Buffer.byteLength(item.text ?? "");
  for (const attachment of item.attachments ?? [])
    size += Math.ceil((attachment.content?.length ?? 0) * (78 / 76));
  // It is sent twice in base64.
  return size + Math.ceil(Buffer.byteLength(item.calendar?.content ?? "") * 3);
}
