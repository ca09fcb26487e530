import { AB_DEFAULTS, type AbMeasure, type AbTest } from "../../core/audience/ab-test.ts";
import { MAX_BROADCASTS } from "../../core/audience/broadcasts.ts";
import type { Mailbox } from "../../core/addresses.ts";
import { AppError, existing, invalid, validationError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import {
  type Address,
  type AddressList,
  addressIssues,
  addressListIssues,
  mailboxesOf,
  mailboxOf,
} from "../../core/messages/address-input.ts";
import { MAX_REPLY_TO } from "../../core/messages/send-item.ts";
import { isBlank } from "../../core/messages/send-rules.ts";
import { readSchedule } from "../../core/time/schedule.ts";
import {
  type Broadcast,
  type BroadcastBody,
  changeBroadcast,
  findBody,
  getBroadcast,
  hasMessages,
  insertBroadcast,
  removeBroadcast,
  replaceBody,
  timeOfChange,
} from "../../store/audience/broadcasts.ts";
import { getSegment } from "../../store/audience/segments.ts";
import { getTopic } from "../../store/audience/topics.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import type { ChangeLimit } from "../../store/projects/holdings.ts";
import { variablesOfTemplate } from "../../store/projects/templates.ts";
import type { Renderer } from "../mime/rendering-tasks.ts";
import { checkedSource, refusing } from "../projects/templates.ts";
import { tooManyRecords } from "../quotas.ts";

/** A broadcast as a client writes it. Null takes a field away. */
export interface GivenBroadcast {
  name?: string;
  topicId?: string;
  segmentId?: string | null;
  from?: Address;
  replyTo?: AddressList | null;
  subject?: string | null;
  templateId?: string | null;
  html?: string | null;
  text?: string | null;
  /** ISO 8601. */
  scheduledAt?: string | null;
  ratePerHour?: number | null;
  routeIds?: readonly string[];
  abTest?: GivenAbTest | null;
}

/** A test of two subjects as a client writes it. An absent field has its value in `AB_DEFAULTS`. */
export interface GivenAbTest {
  subject: string;
  share?: number;
  waitMinutes?: number;
  by?: AbMeasure;
}

/** The services that save broadcasts. */
export interface SaveDeps {
  db: Db;
  renderer: Renderer;
  limits: { maxScheduleDays: number };
}

/** A broadcast with its content. */
export interface WholeBroadcast {
  broadcast: Broadcast;
  body: BroadcastBody;
}

/** Returns a broadcast with its content. @throws AppError 404 */
export async function existingBroadcast(db: Db, senderId: string, id: string): Promise<WholeBroadcast> {
  const broadcast = existing("broadcast", await getBroadcast(db, senderId, id));
  return { broadcast, body: (await findBody(db, senderId, id)) ?? EMPTY_BODY };
}

/**
 * Adds a draft.
 * @param record returns statements for the same write
 * @throws AppError 422 with what is wrong; 403 if there are too many
 */
export async function createBroadcast(
  deps: SaveDeps,
  senderId: string,
  given: GivenBroadcast & { name: string; topicId: string; from: Address },
  now: number,
  record: (made: WholeBroadcast) => readonly Statement[],
): Promise<WholeBroadcast> {
  const { fields, body } = await checked(deps, senderId, given, EMPTY_BODY, now);
  const broadcast: Broadcast = {
    ...UNSENT,
    name: given.name,
    topicId: given.topicId,
    from: mailboxOf(given.from),
    ...fields,
    octets: octetsOf(body),
    id: newId("bro", now),
    senderId,
    createdAt: now,
    updatedAt: now,
  };
  const made = { broadcast, body };
  await deps.db
    .write([...insertBroadcast(broadcast, body), ...record(made)])
    .catch(
      tooManyRecords(
        `A project has at most ${MAX_BROADCASTS} broadcasts. Delete drafts, or let old messages go by \`retention.eventDays\` of the project.`,
        "broadcasts",
      ),
    );
  return made;
}

const EMPTY_BODY: BroadcastBody = { html: null, text: null };
const UNSENT = {
  status: "draft",
  segmentId: null,
  replyTo: [],
  subject: null,
  templateId: null,
  scheduledAt: null,
  ratePerHour: null,
  routeIds: [],
  abTest: null,
  keyId: null,
  filter: null,
  variables: [],
  audience: null,
  startedAt: null,
  endedAt: null,
  lastContactId: "",
  nextAt: null,
  recipients: 0,
  skipped: 0,
  problem: null,
} satisfies Partial<Broadcast>;

/** Changes the given fields of a draft. @throws AppError 404; 409 `invalid_state` once it is sent; 422 with what is wrong */
export async function changeDraft(
  deps: SaveDeps,
  { senderId, id }: { senderId: string; id: string },
  given: GivenBroadcast,
  now: number,
  growing: ChangeLimit,
): Promise<WholeBroadcast> {
  const before = await existingBroadcast(deps.db, senderId, id);
  if (before.broadcast.status !== "draft")
    throw invalidState("Only a draft can be changed. This broadcast was sent.");
  const { fields, body } = await checked(deps, senderId, given, before.body, now);
  const changes = { ...fields, octets: octetsOf(body), updatedAt: timeOfChange(before.broadcast, now) };
  await deps.db
    .write([...changeBroadcast(before.broadcast, changes), ...growing(replaceBody(before.broadcast, body))])
    .catch(changedMeanwhile);
  return { broadcast: { ...before.broadcast, ...changes }, body };
}

/** Deletes a broadcast. @throws AppError 404; 409 `invalid_state` while messages of it are kept, or more are made */
export async function deleteBroadcast(db: Db, senderId: string, id: string): Promise<void> {
  const { broadcast } = await existingBroadcast(db, senderId, id);
  const { status } = broadcast;
  if (status === "sending" || status === "paused")
    throw invalidState("A broadcast that is being sent cannot be deleted. Cancel it first.");
  if (status !== "draft" && (await hasMessages(db, broadcast)))
    throw invalidState(
      "Messages of this broadcast show its content. It can be deleted once they are gone, after the `eventDays` of the project.",
    );
  await db.write(removeBroadcast(broadcast)).catch(changedMeanwhile);
}

/** Returns the 409 for a request that the status of a broadcast does not allow. */
export function invalidState(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state" });
}

/** Throws the error of a write for the client: 409 if the broadcast has changed since it was read. */
export function changedMeanwhile(error: unknown): never {
  if (isBroken(error, "changed_since_read"))
    throw invalidState("The broadcast has changed in the meantime. Read it again.");
  throw error;
}

/** Returns the bytes of a content. */
export function octetsOf({ html, text }: BroadcastBody): number {
  return Buffer.byteLength(html ?? "") + Buffer.byteLength(text ?? "");
}

async function checked(
  deps: SaveDeps,
  senderId: string,
  given: GivenBroadcast,
  before: BroadcastBody,
  now: number,
): Promise<{ fields: Partial<Broadcast>; body: BroadcastBody }> {
  const { name, from, replyTo, scheduledAt, html, text } = given;
  const issues = [
    ...(from === undefined ? [] : addressIssues(from, "from", "invalid_from")),
    ...addressListIssues(replyTo ?? undefined, "replyTo", MAX_REPLY_TO),
  ];
  const at = scheduledAt == null ? null : readSchedule(scheduledAt, deps.limits.maxScheduleDays, now);
  if (at !== null && typeof at !== "number") issues.push(at);
  if (issues.length > 0) throw validationError(issues);
  await requireNamed(deps.db, senderId, given);
  const body = checkedSource({
    subject: given.subject ?? "",
    html: html === undefined ? before.html : html,
    text: text === undefined ? before.text : text,
  });
  await refusing(deps.renderer.variables(senderId, body));
  const fields = {
    ...given,
    abTest: given.abTest && (await checkedTest(deps, senderId, given.abTest)),
    name: name?.toWellFormed(),
    subject: given.subject === undefined ? undefined : given.subject === null ? null : body.subject,
    from: from === undefined ? undefined : mailbox(mailboxOf(from)),
    replyTo: replyTo === undefined ? undefined : mailboxesOf(replyTo ?? undefined).map(mailbox),
    scheduledAt: scheduledAt === undefined ? undefined : (at as number | null),
    routeIds: given.routeIds === undefined ? undefined : [...new Set(given.routeIds)],
  };
  const { html: _, text: __, ...stored } = fields;
  const known = Object.entries(stored).filter(([, value]) => value !== undefined);
  return { fields: Object.fromEntries(known), body: { html: body.html, text: body.text } };
}

/** Returns a test of two subjects that has not begun. @throws AppError 422 if its subject is blank, or no Liquid */
async function checkedTest(
  { renderer }: SaveDeps,
  senderId: string,
  { subject, share, waitMinutes, by }: GivenAbTest,
): Promise<AbTest> {
  if (isBlank(subject)) throw invalid("abTest.subject", "must not be blank.", "missing_field");
  const source = checkedSource({ subject, html: null, text: null });
  await refusing(renderer.variables(senderId, source), "abTest.subject");
  return {
    subject: source.subject,
    share: share ?? AB_DEFAULTS.share,
    waitMinutes: waitMinutes ?? AB_DEFAULTS.waitMinutes,
    by: by ?? AB_DEFAULTS.by,
    decideAt: null,
    decision: null,
  };
}

function mailbox({ email, name }: Mailbox): Mailbox {
  return name === undefined ? { email } : { email, name: name.toWellFormed() };
}

/** Throws 422 if the project lacks the topic, segment or template. */
async function requireNamed(
  db: Db,
  senderId: string,
  { topicId, segmentId, templateId }: GivenBroadcast,
): Promise<void> {
  if (topicId !== undefined && (await getTopic(db, senderId, topicId)) === null)
    throw invalid("topicId", "must be the id of a topic of this project.");
  if (segmentId != null && (await getSegment(db, senderId, segmentId)) === null)
    throw invalid("segmentId", "must be the id of a segment of this project.");
  if (templateId != null && (await variablesOfTemplate(db, senderId, templateId)) === null)
    throw invalid(
      "templateId",
      "must be the id or slug of a template of this project.",
      "template_not_found",
    );
}
