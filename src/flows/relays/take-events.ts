import type { Key } from "../../core/crypto/key-ring.ts";
import { createHash } from "node:crypto";
import { addressKey } from "../../core/addresses.ts";
import { setBounded } from "../../core/collections.ts";
import { AppError } from "../../core/errors.ts";
import { unseal } from "../../core/crypto/secretbox.ts";
import { log } from "../../log.ts";
import { readDiagnostic } from "../../mail/bounces/diagnostic.ts";
import { type FinalClass, classifyGivenUp } from "../../mail/bounces/reply-class.ts";
import { type RelayProvider, RELAYS } from "../../mail/relays/providers.ts";
import type { GetDocument, RelayEvent, RelayRequest } from "../../mail/relays/relay-events.ts";
import { hint } from "../../queue/hint.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import { newDelayGuard, recipientsRelayed } from "../../store/events/relayed.ts";
import type { OutRoute } from "../../store/projects/routes.ts";
import type { ReportedEnd } from "../mime/read-report.ts";
import { announce } from "../webhooks/announce.ts";
import { type EndDeps, takeEnd } from "../deliver/report.ts";

// Events of relays. A smarthost has only accepted a message; what became of it comes later, by the provider's webhook. The
// request is proven before it is read, and an event changes only a recipient whose message that route gave to the relay
// under that id. States move as after a bounce message, so repeated and late events change nothing.

/** Maximum number of events in one request. SendGrid sends 768 KB at a time. */
export const MAX_EVENTS = 5000;
/** Events of a request that are taken at a time, so that their writes share commits. */
const AT_ONCE = 32;
/** Maximum number of events about unknown mail whose record is awaited. If there are more, other systems share the account. */
const MAX_AWAITED = 100;
/** Maximum number of signatures that are remembered against another use, and of certificates. */
const MAX_REMEMBERED = 10_000;
const MAX_DOCUMENTS = 20;

export interface RelayEventDeps extends EndDeps {
  /** Opens the proofs of routes. */
  boxKey: Key;
  /** Proves ids that relays give back. */
  relayKey: Key;
  get: GetDocument;
}

/** Takes a request of a route's relay. Returns how many events of it are about mail of that route. */
export type TakeRelayEvents = (route: OutRoute, request: RelayRequest) => Promise<number>;

/** Returns what takes events. It remembers certificates, and tokens of signatures that do not cover the body. */
export function relayEventTaker(deps: RelayEventDeps): TakeRelayEvents {
  const documents = new Map<string, Uint8Array>();
  const bodies = new Map<string, string>();
  const get: GetDocument = async (url) => {
    const known = documents.get(url) ?? (await deps.get(url));
    if (known !== null) setBounded(documents, url, known, MAX_DOCUMENTS);
    return known;
  };
  return async (route, request) => {
    const { eventsProvider, sealedProof } = route;
    if (eventsProvider === null || sealedProof === null) return 0;
    const provider = RELAYS[eventsProvider];
    const proof = unseal(deps.boxKey, sealedProof);
    if (!(await provider.isProven(request, proof, get)) || !isFirstUse(bodies, provider, request, proof))
      throw new AppError(
        "authentication_error",
        `This request is not proven to come from ${eventsProvider}.`,
      );
    const confirmation = provider.confirmation(request.body, proof);
    if (confirmation !== null) await confirm(deps, confirmation, route.id);
    return takeAll(deps, route, provider.read(request.body, deps.relayKey));
  };
}

/** Returns whether a signature comes with the body that it came with first. */
function isFirstUse(
  bodies: Map<string, string>,
  { replayKey }: RelayProvider,
  request: RelayRequest,
  proof: string,
): boolean {
  const key = replayKey?.(request, proof) ?? null;
  if (key === null) return true;
  const body = createHash("sha256").update(request.bytes).digest("base64url");
  if ((bodies.get(key) ?? body) !== body) return false;
  setBounded(bodies, key, body, MAX_REMEMBERED);
  return true;
}

async function confirm({ get }: RelayEventDeps, url: string, routeId: string): Promise<void> {
  if ((await get(url)) === null)
    throw new AppError("service_unavailable", "The subscription could not be confirmed. Ask for it again.", {
      retryAfterSeconds: 1,
    });
  log("send").info("the subscription of a route's events is confirmed", { routeId });
}

async function takeAll(
  deps: RelayEventDeps,
  { id: routeId }: OutRoute,
  events: readonly RelayEvent[],
): Promise<number> {
  if (events.length > MAX_EVENTS)
    throw new AppError("payload_too_large", `The request has more than ${MAX_EVENTS} events.`);
  const first = await takeEach(deps, routeId, events);
  let { unknown } = first;
  // The relay may report within milliseconds of its 250, whose record another process may still be writing.
  if (unknown.length > 0 && unknown.length <= MAX_AWAITED)
    await deps.earlyReports?.wait<boolean>(false, async () => {
      const again = await takeEach(deps, routeId, unknown);
      unknown = again.unknown;
      first.early += again.early;
      return unknown.length === 0;
    });
  if (first.early === 0) return events.length - unknown.length;
  throw new AppError("service_unavailable", "A message is still being recorded. Send the events again.", {
    retryAfterSeconds: 1,
  });
}

/** Takes events. Returns those about no mail of the route, and the number of those that came too early. */
async function takeEach(
  deps: RelayEventDeps,
  routeId: string,
  events: readonly RelayEvent[],
): Promise<{ unknown: RelayEvent[]; early: number }> {
  const unknown: RelayEvent[] = [];
  let early = 0;
  for (let at = 0; at < events.length; at += AT_ONCE) {
    const some = events.slice(at, at + AT_ONCE);
    const taken = await Promise.all(some.map((event) => takeOne(deps, routeId, event)));
    unknown.push(...some.filter((_, nth) => taken[nth] === "unknown"));
    early += taken.filter((one) => one === "early").length;
  }
  return { unknown, early };
}

type Taken = "taken" | "early" | "unknown";

async function takeOne(deps: RelayEventDeps, routeId: string, event: RelayEvent): Promise<Taken> {
  const found = await relayed(deps, routeId, event);
  if (found === null) return "unknown";
  if (event.kind === "deferred") return noteDelay(deps, found, event);
  const taken = await takeEnd(deps, found, endOf(event));
  return taken === "taken" ? "taken" : "early";
}

/** Returns the recipient that an event is about; null if the route has none, or its id names mail of two projects. */
async function relayed(
  { db }: RelayEventDeps,
  routeId: string,
  { relayId, email }: RelayEvent,
): Promise<Recipient | null> {
  const key = addressKey(email);
  const named = await recipientsRelayed(db, routeId, relayId);
  const meant = named.filter((recipient) => addressKey(recipient.email) === key);
  // A program that submits mail chooses its Message-ID, and may choose one that it has seen in another project's mail.
  return new Set(meant.map(({ senderId }) => senderId)).size === 1 ? (meant[0] ?? null) : null;
}

/** Records that a relay still tries. The recipient's state stays, because the relay has the message. */
async function noteDelay(
  deps: RelayEventDeps,
  recipient: Recipient,
  { diagnostic, mx }: RelayEvent,
): Promise<Taken> {
  const { messageId, senderId, email, attempts: attempt, status } = recipient;
  if (status !== "sent") return "taken";
  const { code: smtpCode, enhanced: enhancedCode } = readDiagnostic(diagnostic ?? "");
  const { category } = classOf(diagnostic);
  const facts = { attempt, nextAttemptAt: null, category, smtpCode, enhancedCode, diagnostic, mx };
  const draft = { messageId, type: "delivery_delayed", email, data: { delivery_delayed: facts } } as const;
  const { statements, pushes } = await announce(
    deps,
    senderId,
    [draft],
    newDelayGuard(recipient, diagnostic),
  );
  const [written] = await deps.db.write(statements);
  if (written?.changes === 1) hint(deps.queue, "push", pushes);
  return "taken";
}

/** Reads the words of the recipient's server by the table that reads our own refusals. */
function classOf(diagnostic: string | null): FinalClass {
  const text = diagnostic ?? "";
  const { code, enhanced, stage } = readDiagnostic(text);
  return classifyGivenUp({ code, enhanced, stage, text });
}

/** Returns the outcome that an event states. The server's own words outweigh the provider's, if they say anything. */
function endOf({ kind, outcome: said, diagnostic, mx, feedbackType }: RelayEvent): ReportedEnd {
  const { code, enhanced } = readDiagnostic(diagnostic ?? "");
  const smtpCode = code ?? Number(/^2\d\d(?=[ -])/.exec(diagnostic ?? "")?.[0] ?? Number.NaN);
  const finding = {
    smtpCode: Number.isNaN(smtpCode) ? null : smtpCode,
    status: enhanced,
    diagnosticCode: diagnostic,
    remoteMta: mx,
  };
  const end = { bounceType: null, finding, authenticated: true };
  if (kind === "delivered") return { ...end, status: "delivered", category: "delivered" };
  if (kind === "complained") return { ...end, status: "complained", category: feedbackType };
  const own = classOf(diagnostic);
  const outcome = own.category === "other" && said !== null ? said : own.outcome;
  if (outcome === "failed") return { ...end, status: "failed", category: own.category };
  const category = own.category === "other" && outcome === "hard" ? "recipient" : own.category;
  return { ...end, status: "bounced", bounceType: outcome, category };
}
