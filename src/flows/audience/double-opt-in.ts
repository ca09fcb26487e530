import type { Key } from "../../core/crypto/key-ring.ts";
import { openLink, sealLink } from "../../core/crypto/sealed-link.ts";
import { addressKey } from "../../core/addresses.ts";
import { PENDING, type TopicShape } from "../../core/audience/topics.ts";
import {
  type ConfirmationTexts,
  confirmationTexts,
  languageOf,
} from "../../core/audience/confirmation-texts.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time/units.ts";
import {
  MAX_JOIN_LINKS_OF_PROJECT,
  MAX_JOIN_LINKS_TO_ADDRESS,
  noteJoinLink,
} from "../../store/audience/join-links.ts";
import { topicShapes } from "../../store/audience/topics.ts";
import type { Store } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { type Contact, findContact, setChoice, setSubscribed } from "../../store/projects/contacts.ts";
import { findShownProject, type Project } from "../../store/projects/projects.ts";
import { hashSecret } from "../account/api-keys.ts";
import { confirmationProject, plainName } from "../account/confirmation-mail.ts";
import { type Mailing, type OwnMail, sendOwnMail } from "../account/service-mail.ts";
import type { AskToJoin } from "../projects/contacts.ts";

/** Path of the links by which people join topics. */
export const JOIN_PATH = "/j/";
/** Milliseconds for which a link works. */
export const JOIN_LINK_MS = 3 * DAY_MS;
/** Maximum number of topics that one link joins. */
export const MAX_TOPICS_OF_LINK = 10;

/** The services that ask people whether they want to join. */
export interface JoinDeps extends Mailing {
  linkKey: Key;
}

/** The content of a link. */
export interface JoinLink {
  senderId: string;
  email: string;
  topicIds: readonly string[];
}

/** Returns the link by which a person joins topics. @param until milliseconds */
export function joinUrl(
  { publicUrl, linkKey }: { publicUrl: string; linkKey: Key },
  { senderId, email, topicIds }: JoinLink,
  until: number,
): string {
  return `${publicUrl}${JOIN_PATH}${sealLink(linkKey, "join", [senderId, email, topicIds], until)}`;
}

/**
 * Returns the function that mails a contact of the project a link to join topics.
 * @throws AppError 422 for an address that gets no mail; 429 if too many links were mailed within a day
 */
export function asksToJoin(deps: JoinDeps, project: Project): AskToJoin {
  return async ({ email, emailKey, properties }, topicIds, statements) => {
    if (topicIds.length > MAX_TOPICS_OF_LINK)
      throw invalid("topics", `may have at most ${MAX_TOPICS_OF_LINK} that ask for a confirmation.`);
    const { db, clock } = deps;
    const from = await confirmationProject(deps, project, emailKey);
    const names = (await topicShapes(db, project.id))
      .filter(({ id }) => topicIds.includes(id))
      .map(({ name }) => plainName(name));
    const now = clock.now();
    const url = joinUrl(deps, { senderId: project.id, email, topicIds }, now + JOIN_LINK_MS);
    const counted = noteJoinLink(project.id, hashSecret(emailKey), now);
    const texts = confirmationTexts(languageOf(properties));
    const mail = mailWith(email, texts, { project: plainName(project.name), topics: names, url });
    await sendOwnMail(deps, from, [mail], [...counted, ...statements]).catch(refused);
  };
}

function mailWith(
  to: string,
  { subject, asked, open, ends }: ConfirmationTexts,
  { project, topics, url }: { project: string; topics: readonly string[]; url: string },
): OwnMail {
  const parts = [
    asked.replace("{project}", () => project),
    topics.map((name) => `- ${name}`).join("\n"),
    open,
    url,
    ends.replace("{days}", String(JOIN_LINK_MS / DAY_MS)),
  ];
  return { to, subject, text: `${parts.join("\n\n")}\n` };
}

function refused(error: unknown): never {
  if (!isBroken(error, "too_many_links")) throw error;
  throw new AppError(
    "rate_limited",
    `An address gets at most ${MAX_JOIN_LINKS_TO_ADDRESS} links to confirm a subscription within a day, and a project mails ${MAX_JOIN_LINKS_OF_PROJECT}. The last link still works.`,
    { retryAfterSeconds: DAY_MS / 1000 },
  );
}

/** A link that was opened: the topics that are still there, and who asks. */
export interface OpenedJoin {
  link: JoinLink;
  projectName: string;
  topics: readonly TopicShape[];
  /** False once the person has confirmed. */
  waits: boolean;
}

/** Returns what a link joins; null if it was not made here, is too old, or the person has left since. */
export async function openJoinLink(
  { db, clock, linkKey }: Store & { linkKey: Key },
  token: string,
): Promise<OpenedJoin | null> {
  const content = openLink(linkKey, "join", token, clock.now());
  if (content === null) return null;
  const [senderId, email, topicIds] = content as [string, string, string[]];
  const [project, shapes, contact] = await Promise.all([
    findShownProject(db, senderId),
    topicShapes(db, senderId),
    findContact(db, senderId, addressKey(email)),
  ]);
  const topics = shapes.filter(({ id }) => topicIds.includes(id) && isOpen(contact, id));
  if (project === null || topics.length === 0) return null;
  const waits = topics.some(({ id }) => contact?.topics[id] === PENDING);
  return { link: { senderId, email, topicIds }, projectName: project.name, topics, waits };
}

/** A choice that the person has made since, such as leaving, ends the link. */
function isOpen(contact: Contact | null, topicId: string): boolean {
  const choice = contact?.topics[topicId];
  return choice === PENDING || choice === 1;
}

/** Lets the person of a link join its topics. A second call changes nothing. */
export async function joinByLink(
  { db, clock }: Store,
  { link: { senderId, email }, topics }: OpenedJoin,
  ip: string | null,
): Promise<void> {
  const contact = await findContact(db, senderId, addressKey(email));
  if (contact === null) return;
  const entry = {
    at: clock.now(),
    subscribed: true,
    how: "double_opt_in",
    ...(ip === null ? {} : { ip }),
  };
  await db.write(
    topics.map(({ id }) => setChoice({ ...contact, consent: [{ ...entry, topicId: id }] }, id, 1)),
  );
  // The person wants this mail now, whatever they left before.
  if (!contact.subscribed) await setSubscribed(db, senderId, contact.id, entry);
}
