import { actingAs, NOBODY } from "../../core/actor.ts";
import { placesOf, type Variant } from "../../core/audience/ab-test.ts";
import { mergeData, usedFields } from "../../core/audience/broadcasts.ts";
import type { RightOfWay } from "../../core/concurrency/right-of-way.ts";
import { AppError } from "../../core/errors.ts";
import { idCeiling, idFloor } from "../../core/ids.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { HOUR_MS, SECOND_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { type BroadcastContact, nextContacts } from "../../store/audience/broadcast-contacts.ts";
import {
  advanceBroadcast,
  type Broadcast,
  changeBroadcast,
  dueBroadcasts,
  dueBulk,
  getBroadcast,
  hasUntried,
  timeOfChange,
} from "../../store/audience/broadcasts.ts";
import { recordVariants } from "../../store/audience/broadcast-variants.ts";
import { fallbacksOf } from "../../store/audience/properties.ts";
import { passingContacts } from "../../store/audience/filter-sets.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { holdingsOf } from "../../store/projects/holdings.ts";
import { sendFacts } from "../../store/messages/sending.ts";
import { findShownProject, type Project } from "../../store/projects/projects.ts";
import { commitSends, type PreparedSend, prepareSend } from "../accept/accept.ts";
import type { SendContent } from "../accept/content.ts";
import { renderedSubject } from "./subject.ts";
import type { Sending } from "../accept/sending.ts";
import { type VolumeOfDay, volumeOfDay } from "../accept/volume.ts";
import { checkedFilter } from "../audience/segments.ts";
import { afterLast, subjectFor } from "./ab-test.ts";
import { pauseIfRevoked } from "./send.ts";

/*
 * The chore that makes the messages of broadcasts. A team that writes to its contacts would miss it. Simpler is one send for each
 * contact in the request, but a million of them take minutes, and a crash would lose the place.
 */

/** The services that make the messages of broadcasts. */
interface BroadcastDeps extends Sending {
  /** Lets the steps wait for other mail. */
  rightOfWay: RightOfWay;
}

/** Broadcasts that a turn continues, and steps of each. */
export const BROADCASTS_PER_TURN = 20;
export const STEPS_PER_TURN = 100;
/** Messages made in one write. A receipt that is sent at the same time waits for no more. */
export const MESSAGES_PER_STEP = 4;
/** Maximum number of due bulk messages of a project before more are made. So few are held by a pause, and few are in the way of other bulk mail. */
export const MAX_DUE = 2000;

/** The position after the last contact. */
const END = idCeiling("con");
/** Pause before a step is tried again that the service could not make, milliseconds. */
const RETRY_MS = 5 * SECOND_MS;

/**
 * Makes the chore. The messages of a step and the new position are one write that holds only while the broadcast is being sent and at
 * the position that was read. So a crash neither skips nor doubles a contact, and any number of processes may run it.
 */
export function makeBroadcasts(deps: BroadcastDeps): () => Promise<void> {
  return async () => {
    for (const broadcast of await dueBroadcasts(deps.db, deps.clock.now(), BROADCASTS_PER_TURN))
      await actingAs(NOBODY, () => continueBroadcast(deps, broadcast)).catch((error: unknown) =>
        log("sweep").error("a broadcast could not go on", { broadcast: broadcast.id, error: String(error) }),
      );
  };
}

async function continueBroadcast(deps: BroadcastDeps, found: Broadcast): Promise<void> {
  let broadcast: Broadcast | null = found;
  for (let step = 0; broadcast !== null && step < STEPS_PER_TURN; step++) {
    const { senderId, id } = broadcast;
    const isOver = await takeStep(deps, broadcast).catch((error: unknown) =>
      settleFailure(deps, broadcast ?? found, error),
    );
    if (isOver) return;
    broadcast = await getBroadcast(deps.db, senderId, id);
    const isDue =
      broadcast?.status === "sending" && (broadcast.nextAt ?? Number.POSITIVE_INFINITY) <= deps.clock.now();
    if (!isDue) return;
  }
}

/** Takes the next step. Returns true if the turn has no more for this broadcast. */
async function takeStep(deps: BroadcastDeps, broadcast: Broadcast): Promise<boolean> {
  const { db, clock } = deps;
  const now = clock.now();
  const project = await findShownProject(db, broadcast.senderId);
  if (project === null) return postpone(deps, broadcast, now + HOUR_MS);
  if (broadcast.lastContactId !== END && (await pauseIfRevoked(db, broadcast, now))) return true;
  if (broadcast.status === "scheduled") {
    await db.write(changeBroadcast(broadcast, { status: "sending", startedAt: now, updatedAt: now }));
    return false;
  }
  if (broadcast.lastContactId === END) return end(deps, broadcast, now);
  const startedAt = broadcast.startedAt ?? now;
  const filter =
    broadcast.filter === null ? null : await checkedFilter(db, project.id, broadcast.filter, startedAt);
  if (broadcast.audience === null) {
    const audience =
      filter === null
        ? (await holdingsOf(db, project.id)).contacts
        : (await passingContacts(db, project.id, filter)).count;
    await db.write(changeBroadcast(broadcast, { audience }));
    return false;
  }
  const room = Math.min(
    MESSAGES_PER_STEP,
    MAX_DUE - (await dueBulk(db, project.id, now, MAX_DUE)),
    ratePerStep(broadcast),
  );
  if (room <= 0) return postpone(deps, broadcast, now + SECOND_MS);
  const volume = await volumeOfDay(deps.db, deps.volume, project, now);
  const left = volume.remaining ?? Number.POSITIVE_INFINITY;
  const range = {
    senderId: project.id,
    filter,
    after: broadcast.lastContactId,
    below: idFloor("con", startedAt + 1),
    places: broadcast.abTest && placesOf(broadcast.id, broadcast.abTest),
  };
  const { contacts, upTo } = await nextContacts(db, range, Math.min(room, Math.max(1, left)));
  if (contacts.length > left) throw usedUp(volume);
  await makeMessages(deps, { project, broadcast, now }, contacts, upTo ?? END);
  return false;
}

/** Lets those of other projects go first, even if the project is being deleted. Returns true. */
async function postpone({ db }: BroadcastDeps, broadcast: Broadcast, nextAt: number): Promise<boolean> {
  await db.write(advanceBroadcast(broadcast, { nextAt }));
  return true;
}

/** Ends a broadcast, or the test of its subjects, once each message was tried. Returns true. */
async function end({ db }: BroadcastDeps, broadcast: Broadcast, now: number): Promise<boolean> {
  const changes = (await hasUntried(db, broadcast))
    ? { nextAt: now + SECOND_MS }
    : await afterLast(db, broadcast, now);
  await db.write(changeBroadcast(broadcast, changes));
  return true;
}

/** Messages of a step: at most those of a second. */
function ratePerStep({ ratePerHour }: Broadcast): number {
  if (ratePerHour === null) return MESSAGES_PER_STEP;
  return Math.max(1, Math.floor((ratePerHour * SECOND_MS) / HOUR_MS));
}

/** Returns when the next step is due after one that made some messages. */
function nextStepAt({ ratePerHour, nextAt }: Broadcast, made: number, now: number): number {
  if (ratePerHour === null) return now;
  // After a pause of the process, the rate does not catch up for more than a second.
  return Math.max(nextAt ?? now, now - SECOND_MS) + Math.ceil((made * HOUR_MS) / ratePerHour);
}

function usedUp({ limit, resetAt }: VolumeOfDay): AppError {
  return new AppError(
    "permission_error",
    `The project's volume of ${limit} recipients a UTC day is used up.`,
    {
      code: "daily_quota_exceeded",
      resetAt: new Date(resetAt).toISOString(),
    },
  );
}

interface Step {
  project: Project;
  broadcast: Broadcast;
  now: number;
}

async function makeMessages(
  deps: BroadcastDeps,
  step: Step,
  contacts: readonly BroadcastContact[],
  lastContactId: string,
): Promise<void> {
  const { project, broadcast, now } = step;
  const wanted = await thoseWhoMayGetIt(deps, step, contacts);
  const fallbacks = wanted.length === 0 ? {} : await fallbacksOf(deps.db, project.id);
  const used = usedFields(broadcast.variables);
  const sends: PreparedSend[] = [];
  const tested: { id: string; variant: Variant }[] = [];
  for (const contact of wanted) {
    // Its queries resolve without a pause, so a receipt would wait for all of them.
    await deps.rightOfWay.turn();
    const data = mergeData(used, contact, fallbacks);
    const { variant, ...chosen } = subjectFor(broadcast, contact.place);
    const subject = await renderedSubject(deps, project.id, chosen.subject, data ?? {});
    if (subject !== null) {
      const send = await prepare(deps, step, contact, { subject, data });
      sends.push(send);
      if (variant !== null) tested.push({ id: send.accepted.id, variant });
    }
  }
  const advance = advanceBroadcast(broadcast, {
    lastContactId,
    recipients: broadcast.recipients + sends.length,
    skipped: broadcast.skipped + contacts.length - sends.length,
    nextAt: nextStepAt(broadcast, sends.length, now),
    problem: null,
  });
  await deps.rightOfWay.turn();
  if (sends.length === 0) return void (await deps.db.write(advance));
  await commitSends(deps, project, sends, (refused) => {
    // All of a step or nothing: a part of it would move the position past the rest.
    for (const refusal of refused.values()) throw refusal;
    return [...recordVariants(broadcast.id, tested), ...advance];
  });
}

/** Returns the contacts that are neither suppressed nor unsubscribed, and get the topic. It is checked again when a message leaves. */
async function thoseWhoMayGetIt(
  { db }: BroadcastDeps,
  { project, broadcast: { topicId }, now }: Step,
  contacts: readonly BroadcastContact[],
): Promise<readonly BroadcastContact[]> {
  if (contacts.length === 0) return [];
  const keys = contacts.map(({ emailKey }) => emailKey);
  const question = { fromDomain: "", inboxAddress: "", keys, unsubscribeLink: true, topicId };
  const { suppressed, unsubscribed } = await sendFacts(db, project, question, now);
  return contacts.filter(({ emailKey }) => !suppressed.has(emailKey) && !unsubscribed.has(emailKey));
}

/** The content of a message, which is that of its broadcast, filled in when it leaves. */
function contentOf({ octets }: Broadcast): SendContent {
  return {
    mayWriteAhead: () => false,
    texts: async () => ({ html: null, text: null }),
    keep: async () => ({ body: null, attachments: [], size: octets }),
  };
}

async function prepare(
  deps: BroadcastDeps,
  { project, broadcast }: Step,
  contact: BroadcastContact,
  { subject, data }: { subject: string; data: Record<string, unknown> | null },
): Promise<PreparedSend> {
  const { from, replyTo, topicId, keyId } = broadcast;
  const name = [contact.firstName, contact.lastName].filter(Boolean).join(" ");
  const item: ReadItem = {
    from,
    to: [name === "" ? { email: contact.email } : { email: contact.email, name }],
    replyTo,
    subject,
    topicId,
    unsubscribeLink: true,
    stream: "bulk",
    ...(data === null ? {} : { data }),
  };
  const by = { keyId, bounds: UNBOUND };
  const options = { content: contentOf(broadcast), broadcast };
  return prepareSend(deps, project, by, { item, scheduledAt: null }, options);
}

/**
 * Decides what becomes of a broadcast whose step failed. Without volume it waits for the next day; refused for another reason it is
 * paused until a person resumes it. Returns true.
 */
async function settleFailure(
  { db, clock }: BroadcastDeps,
  broadcast: Broadcast,
  error: unknown,
): Promise<boolean> {
  if (isBroken(error, "changed_since_read")) return true;
  const now = clock.now();
  const isRefused = error instanceof AppError && error.type !== "service_unavailable";
  if (!isRefused) {
    log("sweep").warn("a step of a broadcast is tried again", {
      broadcast: broadcast.id,
      error: String(error),
    });
    await db.write(changeBroadcast(broadcast, { nextAt: now + RETRY_MS }));
    return true;
  }
  const { resetAt } = error.details;
  const problem = { code: error.details.code ?? error.type, message: error.message };
  const waits = resetAt === undefined ? {} : { nextAt: Date.parse(resetAt), problem };
  const paused = { status: "paused" as const, problem, updatedAt: timeOfChange(broadcast, now) };
  await db.write(changeBroadcast(broadcast, resetAt === undefined ? paused : waits));
  return true;
}
