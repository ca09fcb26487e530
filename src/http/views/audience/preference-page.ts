import type { PageTexts } from "../../../core/audience/page-texts.ts";
import type { Preferences, ReaderTopic } from "../../../flows/audience/preferences.ts";

/** `topic` of the button that leaves or joins as a whole. */
export const ALL_TOPICS = "all";

/** Returns heading and content of a reader's page as HTML. @param done the choice that was just made */
export function preferenceContent(
  preferences: Preferences,
  done: "left" | "saved" | null,
): { heading: string; content: string } {
  const { texts } = preferences;
  const heading = done === "left" ? texts.left : preferences.words?.subject || texts.heading;
  const said = { left: texts.noMore, saved: texts.saved };
  const lead =
    done === null ? paragraphs(preferences.words?.text ?? "") : `<p>${Bun.escapeHTML(said[done])}</p>`;
  return { heading: Bun.escapeHTML(heading), content: lead + controls(preferences) };
}

function paragraphs(text: string): string {
  return text
    .split(/\n\s*\n/)
    .filter((part) => part.trim() !== "")
    .map((part) => `<p>${Bun.escapeHTML(part.trim()).replaceAll("\n", "<br>")}</p>`)
    .join("");
}

function controls({ subscribed, topics, texts }: Preferences): string {
  if (!subscribed)
    return `<p>${Bun.escapeHTML(texts.getsNone)}</p>${button(ALL_TOPICS, "subscribed", texts.joinAll)}`;
  const rows = topics.map((topic) => rowOf(topic, texts)).join("");
  if (rows === "") return button(ALL_TOPICS, "unsubscribed", texts.leave);
  return `<dl>${rows}</dl>${button(ALL_TOPICS, "unsubscribed", texts.leaveAll, PLAIN)}`;
}

function rowOf({ id, name, description, subscribed }: ReaderTopic, texts: PageTexts): string {
  const state = subscribed ? texts.subscribed : texts.unsubscribed;
  const about = { ...PLAIN, about: name };
  const change = subscribed
    ? button(id, "unsubscribed", texts.leave, about)
    : button(id, "subscribed", texts.join, about);
  return `<div>${topicName({ name, description })}<dd>${Bun.escapeHTML(state)}</dd><dd class="act">${change}</dd></div>`;
}

/** Returns name and description of a topic in a list `dl`. */
export function topicName({ name, description }: Pick<ReaderTopic, "name" | "description">): string {
  const about = description === "" ? "" : `<dd>${Bun.escapeHTML(description)}</dd>`;
  return `<dt>${Bun.escapeHTML(name)}</dt>${about}`;
}

interface ButtonOptions {
  /** True if it is not what most readers came for. */
  plain?: boolean;
  /** The thing that the button is for, if several have the same words. */
  about?: string;
}

const PLAIN = { plain: true };

/** Returns a form with one button. */
function button(topic: string, choice: string, text: string, { plain, about }: ButtonOptions = {}): string {
  const look = plain === true ? ' class="plain"' : "";
  const label = about === undefined ? "" : ` aria-label="${Bun.escapeHTML(`${text}: ${about}`)}"`;
  return `<form method="post" action="?by=page&amp;topic=${topic}&amp;choice=${choice}"><button${look}${label}>${Bun.escapeHTML(text)}</button></form>`;
}
