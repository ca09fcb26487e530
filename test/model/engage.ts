import type { Chance } from "../support/chance.ts";
import { agree, differ, itemsOf, membersOf, textOf } from "./agree.ts";
import { type Deed, someOf } from "./choice.ts";
import { contactOf } from "./contacts.ts";
import { readRecord } from "./records.ts";
import { ask, NEVER } from "./request.ts";
import type { Message, Project, Recipient, World } from "./state.ts";

/** If a visit comes within these milliseconds of the delivery, it counts as a machine's. */
const MACHINE_MS = 5000;
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

interface Letter {
  project: Project;
  message: Message;
  recipient: Recipient;
  deliveredAt: number;
  /** Its bytes, with lines unfolded and quoted-printable decoded. */
  text: string;
}

/** A letter that was delivered to a person, or null if there is none yet. */
async function letterOf(
  world: World,
  chance: Chance,
  wanted: (message: Message) => boolean,
): Promise<Letter | null> {
  const isThere = ({ email, status }: Recipient) => status === "delivered" && email.endsWith("@ok.example");
  const found = someOf(world, chance, ({ messages }) =>
    messages.filter((message) => wanted(message) && message.recipients.some(isThere)),
  );
  const recipient = found?.item.recipients.find(isThere);
  const deliveredAt = recipient?.events.find(({ type }) => type === "delivery")?.at;
  if (found === null || recipient === undefined || deliveredAt === undefined) return null;
  const { project, item: message } = found;
  await readRecord(world, NEVER, project, message);
  const { rfcId } = message;
  const mail = world.stage.mails.find(
    ({ rcptTo, raw }) => rcptTo === recipient.email && rfcId !== null && raw.includes(rfcId),
  );
  if (mail === undefined) return differ(`${recipient.email} has no mail ${rfcId}`);
  const text = mail.raw
    .replace(/=\r\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\r\n[ \t]+/g, " ");
  return { project, message, recipient, deliveredAt, text };
}

/** A reader loads the pixel or follows the link of an html message. */
export const visit: Deed = async (world, chance) => {
  const letter = await letterOf(
    world,
    chance,
    ({ html, templateId }) => html !== null && templateId === null,
  );
  if (letter === null) return;
  const type = chance.pick(["open", "click"]);
  const pattern = type === "open" ? /<img[^>]+src="([^"]+)"/ : /href="([^"]+)"/;
  const url = pattern.exec(letter.text)?.[1] ?? differ(`no place of ${type} in ${letter.text}`);
  const now = world.stage.clock.now();
  const request = new Request(url, { headers: { "user-agent": BROWSER } });
  const answer = await world.stage.fetch(request);
  world.trace.push(`${type} ${url} -> ${answer.status}`);
  agree(answer.status, type === "open" ? 200 : 302, `the answer to a ${type}`);
  if (type === "click")
    agree(answer.headers.get("location"), "https://shop.example/a?b=1&c=2", "where the link leads");
  const machine = now - letter.deliveredAt < MACHINE_MS;
  letter.recipient.events.push({ type, at: now, machine });
};

/** One POST unsubscribes the contact. If there is none, it is made. A GET changes nothing. */
export const unsubscribeByLink: Deed = async (world, chance) => {
  const letter = await letterOf(world, chance, ({ unsubscribeLink }) => unsubscribeLink);
  if (letter === null) return;
  const { project, recipient, text } = letter;
  const url = /^List-Unsubscribe:\s+<([^>]+)>/im.exec(text)?.[1] ?? differ(`no List-Unsubscribe in ${text}`);
  const changed = await world.stage.guard.changes(async () => {
    agree((await world.stage.fetch(new Request(url))).status, 200, "the page of an unsubscribe link");
  });
  agree(changed, [], "what a GET of an unsubscribe link changes");
  const body = "List-Unsubscribe=One-Click";
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await world.stage.fetch(new Request(url, { method: "POST", body, headers }));
  world.trace.push(`POST ${url} -> ${answer.status}`);
  agree(answer.status, 200, "the answer to one-click unsubscribing");
  const now = world.stage.clock.now();
  const contact = contactOf(project, recipient.email);
  if (contact?.subscribed !== false) recipient.events.push({ type: "unsubscribed", at: now });
  if (contact?.subscribed === true) Object.assign(contact, { subscribed: false, unsubscribedAt: now });
  if (contact !== undefined) return;
  const path = `/v1/contacts?q=${encodeURIComponent(recipient.email)}`;
  const asked = { account: project.account, project, method: "GET", path, scope: "contacts:read" };
  const listed = await ask(world, NEVER, asked, { status: 200 });
  const [made] = itemsOf(membersOf(listed.body).data).map(membersOf);
  const facts = { firstName: null, lastName: null, subscribed: false, metadata: {} };
  agree(made, { email: recipient.email, ...facts }, "the contact that a link made");
  const id = textOf(made?.id);
  project.contacts.push({ id, email: recipient.email, ...facts, unsubscribedAt: now, createdAt: now });
};
