import { addressKey } from "../../core/addresses.ts";
import { ownTexts, type PageLanguage, type PageTexts, pageTexts } from "../../core/audience/page-texts.ts";
import type { TopicShape } from "../../core/audience/topics.ts";
import { topicOfMessage, topicShapes } from "../../store/audience/topics.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import type { Db } from "../../store/engine/client.ts";
import { type Contact, findContact, setChoice, setSubscribed } from "../../store/projects/contacts.ts";
import { beginningOf } from "../../store/projects/templates.ts";
import { strangerContact, type UnsubscribeDeps } from "../deliver/unsubscribe-recipient.ts";

/** Slug of the template whose subject and text are the page's own words. With `-de`, those for readers of German. */
export const PAGE_TEMPLATE = "unsubscribe-page";
/** Slug of the template whose text has the words of buttons and sentences, one to a line. */
export const WORDS_TEMPLATE = "unsubscribe-page-words";

/** Maximum characters of the page's own words. */
export const MAX_PAGE_CHARS = 2000;

/** Returns the words of pages for readers of a project in a language, with those that the project gives in place of ours. */
export async function wordsFor(db: Db, senderId: string, language: PageLanguage): Promise<PageTexts> {
  const slugs = [`${WORDS_TEMPLATE}-${language}`, WORDS_TEMPLATE];
  const own = await beginningOf(db, senderId, slugs, MAX_PAGE_CHARS);
  return { ...pageTexts(language), ...ownTexts(own?.text ?? "") };
}

/** A topic as a reader sees it. */
export interface ReaderTopic extends Pick<TopicShape, "id" | "name" | "description"> {
  subscribed: boolean;
}

/** The mail that a reader gets from a project, and can choose. */
export interface Preferences {
  /** False if the reader gets no mail with an unsubscribe link at all. */
  subscribed: boolean;
  /** The visible topics, and that of the message, which is the first. */
  topics: readonly ReaderTopic[];
  /** The project's own words in place of the heading, and above the buttons. */
  words: { subject: string; text: string } | null;
  /** The words of buttons and sentences. */
  texts: PageTexts;
}

/** Returns what the recipient of a message gets and can choose. @param language of the page */
export async function preferencesOf(
  { db }: Pick<UnsubscribeDeps, "db">,
  { messageId, senderId, email }: Recipient,
  language: PageLanguage,
): Promise<Preferences> {
  const [topicId, contact] = await Promise.all([
    topicOfMessage(db, messageId),
    findContact(db, senderId, addressKey(email)),
  ]);
  return preferencesFor(db, { senderId, topicId, contact }, language);
}

/** The reader of a message. */
interface Reader {
  senderId: string;
  /** The topic of the message. */
  topicId: string | null;
  /** Null: a person who has chosen nothing. */
  contact: Pick<Contact, "subscribed" | "topics"> | null;
}

/** Returns what a reader gets and can choose. @param language of the page */
export async function preferencesFor(
  db: Db,
  { senderId, topicId, contact }: Reader,
  language: PageLanguage,
): Promise<Preferences> {
  const [topics, texts, words] = await Promise.all([
    topicShapes(db, senderId),
    wordsFor(db, senderId, language),
    beginningOf(db, senderId, [`${PAGE_TEMPLATE}-${language}`, PAGE_TEMPLATE], MAX_PAGE_CHARS),
  ]);
  return {
    subscribed: contact?.subscribed ?? true,
    words,
    texts,
    topics: topics
      .filter(({ id, visible }) => visible || id === topicId)
      .sort((a, b) => Number(b.id === topicId) - Number(a.id === topicId))
      .map(({ id, name, description, defaultSubscribed }) => {
        const choice = contact?.topics[id];
        return { id, name, description, subscribed: choice === undefined ? defaultSubscribed : choice === 1 };
      }),
  };
}

/** Lets the recipient of a message join a topic, or with null get mail again that has an unsubscribe link. */
export async function join(
  { db, clock }: Pick<UnsubscribeDeps, "db" | "clock">,
  { senderId, email }: Recipient,
  topicId: string | null,
  ip: string | null,
): Promise<void> {
  const at = clock.now();
  const from = ip === null ? {} : { ip };
  if (topicId !== null) {
    const entry = { at, subscribed: true, how: "page", ...from, topicId };
    await db.write([setChoice(strangerContact(senderId, email, entry), topicId, 1)]);
    return;
  }
  const contact = await findContact(db, senderId, addressKey(email));
  if (contact !== null)
    await setSubscribed(db, senderId, contact.id, { at, subscribed: true, how: "page", ...from });
}
