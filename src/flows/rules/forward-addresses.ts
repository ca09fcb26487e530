import { actingAs, currentActor } from "../../core/actor.ts";
import { addressKey } from "../../core/addresses.ts";
import { requiredAddress } from "../../core/messages/address-input.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { openLink, sealLink } from "../../core/crypto/sealed-link.ts";
import { AppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { type Db, type Statement, type Store, ConstraintError } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";
import { findShownProject, type Project } from "../../store/projects/projects.ts";
import {
  askForwardAddress,
  confirmForwardAddress,
  type ForwardAddress,
  getForwardAddress,
  MAX_FORWARD_ADDRESSES,
  MAX_LINKS_OF_PROJECT,
  MAX_LINKS_TO_ADDRESS,
  rowOfAddress,
} from "../../store/rules/forward-addresses.ts";
import { confirmationProject, plainName } from "../account/confirmation-mail.ts";
import { type Mailing, type OwnMail, sendOwnMail } from "../account/service-mail.ts";
import { tooManyRecords } from "../quotas.ts";

// Without a proof of the recipient's consent, a rule could send all mail of a project to a stranger. The link is sealed as that of an
// approval is, so no table holds its token. It goes into the service's own mail, which no key of the project can read.

/** Path of the links. */
export const FORWARD_PATH = "/f/";
/** Milliseconds for which a link works. */
export const FORWARD_LINK_MS = 3 * DAY_MS;

/** The services that ask the owner of an address. */
export interface AskDeps extends Mailing {
  linkKey: Key;
}

/** What a link names. */
interface ForwardLink {
  senderId: string;
  id: string;
}

/** Returns the link that confirms an address. @param until milliseconds */
export function forwardUrl(
  { publicUrl, linkKey }: { publicUrl: string; linkKey: Key },
  { senderId, id }: ForwardLink,
  until: number,
): string {
  return `${publicUrl}${FORWARD_PATH}${sealLink(linkKey, "forward", [senderId, id], until)}`;
}

/**
 * Asks the owner of an address whether rules of the project may forward mail there, unless that is confirmed.
 * @param record statements for the same write, given the address
 * @throws AppError 422 for no address, or one that gets no mail; 403 if there are too many; 429 if too many links were mailed today
 */
export async function addForwardAddress(
  deps: AskDeps,
  project: Project,
  given: string,
  record: (address: ForwardAddress) => readonly Statement[],
): Promise<ForwardAddress> {
  const email = requiredAddress(given, "email");
  const sent = await retryOnConflict(
    () => askOnce(deps, project, email, record),
    (error) => isBroken(error, "changed_since_read") || isTaken(error),
  );
  if (sent !== null) return sent;
  throw new AppError("service_unavailable", "The address was asked for at the same time. Try again.", {
    retryAfterSeconds: 1,
  });
}

function isTaken(error: unknown): boolean {
  return error instanceof ConstraintError && error.unique?.startsWith("forward_addresses.") === true;
}

async function askOnce(
  deps: AskDeps,
  project: Project,
  email: string,
  record: (address: ForwardAddress) => readonly Statement[],
): Promise<ForwardAddress> {
  const { db, clock } = deps;
  const key = addressKey(email);
  const before = await rowOfAddress(db, project.id, key);
  if (before !== null && before.removedAt === null && before.confirmedAt !== null) return before;
  const from = await confirmationProject(deps, project, key);
  const now = clock.now();
  const dayStart = now - (now % DAY_MS);
  const mails = before !== null && before.askedAt >= dayStart ? before.mails + 1 : 1;
  const kept = before?.removedAt === null ? before : null;
  const address: ForwardAddress = {
    ...(kept ?? { id: newId("fwd", now), senderId: project.id, email, emailKey: key, createdAt: now }),
    confirmedAt: null,
    removedAt: null,
    askedAt: now,
    mails,
  };
  const mail = mailFor(deps, project, address);
  const stored = [...askForwardAddress(address, before, dayStart), ...record(address)];
  await sendOwnMail(deps, from, [mail], stored).catch(refused(dayStart + DAY_MS - now));
  return address;
}

/** Makes a handler that throws the error of a write as the client sees it. */
function refused(leftMs: number): (error: unknown) => never {
  return (error) => {
    if (!isBroken(error, "too_many_links"))
      return tooManyRecords(
        `A project has at most ${MAX_FORWARD_ADDRESSES} forward addresses.`,
        "email",
      )(error);
    throw new AppError(
      "rate_limited",
      `An address gets at most ${MAX_LINKS_TO_ADDRESS} links a day, and a project mails ${MAX_LINKS_OF_PROJECT}. Use the last link, or try again tomorrow.`,
      { retryAfterSeconds: Math.ceil(leftMs / 1000) },
    );
  };
}

function mailFor(deps: AskDeps, { name }: Project, address: ForwardAddress): OwnMail {
  const actor = currentActor();
  const asker = actor.type === "member" && actor.name !== null ? actor.name : "an API key of the project";
  const url = forwardUrl(deps, address, address.askedAt + FORWARD_LINK_MS);
  const days = FORWARD_LINK_MS / DAY_MS;
  return {
    to: address.email,
    subject: "Confirm that mail is forwarded to you",
    text: `The project "${plainName(name)}" at ${deps.publicUrl} wants to forward mail that it receives to ${address.email}. This was asked for by ${asker}.\n\nOpen this link to confirm it:\n\n${url}\n\nIt works for ${days} days. If you do not want this, ignore this message: nothing is forwarded then.\n`,
  };
}

/** A link that was opened: its address, and the name of the project that asked. */
export interface OpenedForward {
  address: ForwardAddress;
  projectName: string;
}

/** Returns what a link names; null if it was not made here, is too old, or its address was removed. */
export async function openForwardLink(
  { db, clock, linkKey }: Store & { linkKey: Key },
  token: string,
): Promise<OpenedForward | null> {
  const content = openLink(linkKey, "forward", token, clock.now());
  if (content === null) return null;
  const [senderId, id] = content as [string, string];
  const [address, project] = await Promise.all([
    getForwardAddress(db, senderId, id),
    findShownProject(db, senderId),
  ]);
  return address === null || project === null ? null : { address, projectName: plainName(project.name) };
}

/** Confirms the address of a link in its owner's name. @param from the request, for the audit trail */
export async function confirmByLink(
  { db, clock }: { db: Db; clock: Store["clock"] },
  { senderId, id, email }: ForwardAddress,
  from: { ip: string | null; requestId: string },
): Promise<void> {
  const owner = { type: "service" as const, id: null, name: email, ...from };
  await actingAs(owner, () => confirmForwardAddress(db, senderId, id, clock.now()));
}
