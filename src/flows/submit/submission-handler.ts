import { splitAddress, type Mailbox } from "../../core/addresses.ts";
import type { RightOfWay } from "../../core/concurrency/right-of-way.ts";
import { UNBOUND } from "../../core/key-bounds.ts";
import { AppError, type ErrorCode } from "../../core/errors.ts";
import type { SendLimits } from "../../core/messages/send-rules.ts";
import { log } from "../../log.ts";
import { withoutOwnResults } from "../../mail/auth/own-results.ts";
import { readAuthorship } from "../../mail/submitted/authorship.ts";
import { splitHeader, type SubmittedHeader } from "../../mail/submitted/header.ts";
import type { Envelope, MailHandler } from "../../smtp/session/envelope.ts";
import { isLoopback } from "../../smtp/listener/peer.ts";
import { type Reply, REPLIES, reply } from "../../smtp/session/reply.ts";
import { holderOf } from "../../store/projects/holdings.ts";
import { defaultProject } from "../../store/projects/projects.ts";
import type { FreeSpace } from "../free-space.ts";
import { commitSend, prepareSend, sending } from "../accept/accept.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import { type CallerDeps, identify, type SubmittingKey, submittingKey } from "./caller.ts";
import { type Controls, readControls } from "./controls.ts";
import { addressesIn, submittedItem } from "./submitted-mail.ts";
import { templateItem } from "./template-item.ts";
import { partsOf, wholeContent } from "./whole-content.ts";
import { headerBlockOf } from "../../mail/reading/header-block.ts";
import type { Sending } from "../accept/sending.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { findAnswer, IDEMPOTENCY_WINDOW_MS, insertAnswer } from "../../store/projects/idempotency.ts";

export interface SubmissionDeps extends Sending, CallerDeps {
  inspect: Inspect;
  /** The authserv-id of our findings. */
  hostname: string;
  limits: SendLimits;
  /** Takes one request from the rate of a project. Returns null if its plan has no limit. */
  takeRate: (id: string, plan: string) => Promise<{ allowed: boolean } | null>;
  space: FreeSpace;
  /** Lets bulk mail wait while a message is taken. */
  rightOfWay: RightOfWay;
  /** True if no message leaves this machine. Then programs of this machine need no key. */
  capture: boolean;
  /** Called with the outcome of each message, for counters. */
  submitted?: (outcome: SubmissionOutcome) => void;
}

/** The outcome of a submitted message, as counters name it. */
export type SubmissionOutcome = "accepted" | "refused" | "deferred";

/** Number of Received fields at which a message counts as looping (RFC 5321 §6.3). */
const MAX_RECEIVED = 100;

const UNSENDABLE = reply(550, "5.1.3", "No mail can be sent to this address");
const LOOP = reply(554, "5.4.6", "Too many hops, the message is looping");
const DISK_LOW = reply(452, "4.3.1", "The disk is low, nothing new can be stored now");
const TOO_FAST = reply(452, "4.3.1", "Too many messages, try again later");
const ONE_FROM = reply(550, "5.7.1", "The message needs one From with one address");
/** The session ends, so that the client logs in again, which tells it the reason. It keeps the message. */
const KEY_REVOKED = reply(421, "4.7.0", "The API key of this session is not valid any more");

/** Creates the handler of submissions (RFC 6409). Each message takes the same way as a send over the API. */
export function createSubmissionHandler(deps: SubmissionDeps): MailHandler {
  return {
    async login({ password }) {
      const identity = await identify(deps, password, deps.clock.now());
      return identity === null ? REPLIES.wrongLogin : { identity };
    },
    recipient: async (address) => refuseRecipient(address),
    async message(envelope, raw) {
      const taking = deps.rightOfWay.first(() => submit(deps, envelope, raw));
      const answer = await taking.catch((error: unknown) => {
        if (error instanceof AppError) return refusalReply(error);
        deps.submitted?.("deferred");
        throw error;
      });
      deps.submitted?.(outcomeOf(answer));
      return answer;
    },
  };
}

/** Returns the reply to an address that no mail can be sent to, else null. */
export function refuseRecipient(address: string): Reply | null {
  return splitAddress(address) === null ? UNSENDABLE : null;
}

function outcomeOf({ code }: Reply): SubmissionOutcome {
  if (code < 300) return "accepted";
  return code < 500 ? "deferred" : "refused";
}

/** A message without a login has no key, and no bounds, because it never leaves this machine. */
const NO_KEY = { keyId: null, bounds: UNBOUND };

/** The project and key of a message, and whether it is captured because it came without a key. */
interface Sender extends SubmittingKey {
  captured: boolean;
}

async function submit(deps: SubmissionDeps, envelope: Envelope, received: Uint8Array): Promise<Reply> {
  const raw = withoutOwnResults(received, deps.hostname);
  const header = splitHeader(raw);
  if (typeof header === "string") return reply(550, "5.6.0", header);
  if (header.kept.filter(({ name }) => name === "received").length > MAX_RECEIVED) return LOOP;
  const now = deps.clock.now();
  const controls = readControls(header.control, deps.limits, now);
  const sender = await senderOf(deps, envelope, controls);
  if ("code" in sender) return sender;
  if (deps.space.low()) return DISK_LOW;
  const id = await sendAs(deps, sender, { envelope, raw, header, controls });
  return typeof id === "string" ? reply(250, "2.0.0", `queued as ${id}`) : id;
}

/**
 * Returns the sender of a message, or the reply that refuses it. Without a login only captured messages are taken, and
 * only from this machine: this must never be an open relay.
 */
async function senderOf(
  deps: SubmissionDeps,
  { login, ip }: Envelope,
  controls: Controls,
): Promise<Sender | Reply> {
  if (login === undefined) {
    const project = deps.capture && isLoopback(ip) ? await defaultProject(deps.db) : null;
    return project === null ? REPLIES.loginNeeded : { project, by: NO_KEY, captured: true };
  }
  const caller = await submittingKey(deps, login, controls.project);
  if (caller === null) return KEY_REVOKED;
  const rate = await deps.takeRate(caller.project.id, caller.project.plan);
  return rate?.allowed === false ? TOO_FAST : { ...caller, captured: false };
}

/** A message with everything that is known of it. */
interface Submission {
  envelope: Envelope;
  raw: Uint8Array;
  header: SubmittedHeader;
  controls: Controls;
}

/** Sends a message. Returns its id, or the reply that refuses it. */
async function sendAs(
  deps: SubmissionDeps,
  { project, by, captured }: Sender,
  { envelope, raw, header, controls }: Submission,
): Promise<string | Reply> {
  const block = headerBlockOf(header.kept);
  const authorship = readAuthorship(header.kept);
  if ("text" in authorship) return reply(550, authorship.forbidden ? "5.7.1" : "5.6.0", authorship.text);
  const { replyTo } = authorship;
  const from = captured ? (authorship.from ?? mailboxOf(envelope.mailFrom)) : sendable(authorship.from);
  if (from === null) return ONE_FROM;
  const isList = header.kept.some(({ name }) => name === "list-unsubscribe");
  const stream = controls.stream ?? (isList ? "bulk" : null);
  const item = submittedItem(block, { from, replyTo }, addressesIn(header.kept), envelope.rcptTo, {
    ...controls,
    stream,
  });
  const owner = holderOf(project.id, captured);
  const { template: templateId, data, scheduledAt, idempotencyKey: key } = controls;
  const submitIt = async (record: Parameters<Parameters<typeof submitOnce>[2]>[0]): Promise<string> => {
    const parts = await partsOf(deps, raw, block);
    const { attachments = [] } = parts ?? {};
    const [sent, content] =
      templateId === null
        ? [item, wholeContent({ raw, header, block, parts, envelope })]
        : [await templateItem(deps, { item, block, raw, attachments }, { templateId, data }), undefined];
    return sending(async () => {
      const prepared = await prepareSend(
        deps,
        project,
        by,
        { item: sent, scheduledAt },
        { content, captured },
      );
      const { id } = prepared.accepted;
      await commitSend(deps, project, prepared, record(id));
      log("smtp").debug("a message was submitted", { message: id, bytes: raw.length });
      return id;
    });
  };
  return key === null
    ? submitIt(() => [])
    : submitOnce(deps.db, { owner, key, now: deps.clock.now() }, submitIt);
}

/** Returns the author, or null without one whose domain can be checked. */
function sendable(author: Mailbox | null): Mailbox | null {
  return author !== null && splitAddress(author.email) !== null ? author : null;
}

function mailboxOf(address: string): Mailbox | null {
  return address === "" ? null : { email: address };
}

/** Errors that more than their type decides about. */
const BY_CODE: Partial<Record<ErrorCode, [code: number, enhanced: string]>> = {
  message_too_large: [552, "5.3.4"],
  daily_quota_exceeded: [452, "4.3.1"],
  trust_tier_exceeded: [452, "4.3.1"],
  quota_exceeded: [452, "4.3.1"],
};

/** Returns the reply to a message that the API would refuse with that error. */
function refusalReply({ type, message, details: { code } }: AppError): Reply {
  const known = code === undefined ? undefined : BY_CODE[code];
  if (known !== undefined) return reply(...known, message);
  switch (type) {
    case "rate_limited":
      return reply(452, "4.3.1", message);
    case "service_unavailable":
      return reply(451, "4.3.0", message);
    case "permission_error":
    case "not_found":
      return reply(550, "5.7.1", message);
    default:
      return reply(550, "5.6.0", message);
  }
}

/** The place of submissions among the endpoints of stored answers. */
const ENDPOINT = "SMTP";
/** The key alone decides, because clients renew Date, Message-ID and boundaries when they send again. */
const ANY_BODY = "any";
const TAKEN = 250;

interface KeyedMessage {
  /** See `holderOf`. */
  owner: string;
  key: string;
  /** Milliseconds. */
  now: number;
}

/**
 * Submits a message once for its key. If it comes again within 24 hours, returns the id of the first one.
 * @param submit sends the message together with the statements that it is given for its id; returns the id
 */
async function submitOnce(
  db: Db,
  { owner, key, now }: KeyedMessage,
  submit: (record: (id: string) => Statement[]) => Promise<string>,
): Promise<string> {
  const at = { scope: owner, endpoint: ENDPOINT, key };
  const first = async (): Promise<string | null> => {
    const found = await findAnswer(db, at);
    return found === null || found.createdAt <= now - IDEMPOTENCY_WINDOW_MS ? null : found.body;
  };
  const known = await first();
  if (known !== null) return known;
  try {
    return await submit((id) => [
      insertAnswer(at, { bodyHash: ANY_BODY, status: TAKEN, body: id, createdAt: now }),
    ]);
  } catch (error) {
    // A message with this key came in another session at the same time. Ours was undone, or refused for what that one used.
    if (!isBroken(error, "key_answered") && !(error instanceof AppError)) throw error;
    const won = await first();
    if (won === null) throw error;
    return won;
  }
}
