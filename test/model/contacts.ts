import type { Chance } from "../support/chance.ts";
import { agree, isIdOf, membersOf, shownTime, shownTimeOrNull, textOf } from "./agree.ts";
import { type Deed, some, someOf, someProject } from "./choice.ts";
import { ADDRESSES } from "./addresses.ts";
import { type Ask, ask, askToChange } from "./request.ts";
import type { Contact, Project } from "./state.ts";

export function contactView({ createdAt, unsubscribedAt, ...facts }: Contact): object {
  return { ...facts, unsubscribedAt: shownTimeOrNull(unsubscribedAt), createdAt: shownTime(createdAt) };
}

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "contacts:read" : "contacts:write";
  return { account: project.account, project, method, path: `/v1/contacts${path}`, scope };
}

export function contactOf(project: Project, email: string): Contact | undefined {
  return project.contacts.find((contact) => contact.email.toLowerCase() === email.toLowerCase());
}

const NAMES = ["Ada", "Björk", "50%_off", "Привет Мир", "Élise à Paris", null] as const;
const oddCase = (chance: Chance, email: string): string =>
  chance.happens(0.3) ? email.toUpperCase() : email;

export const makeContact: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const email = oddCase(chance, chance.pick(ADDRESSES));
  const now = world.stage.clock.now();
  const subscribed = chance.pick([undefined, undefined, true, false]);
  const firstName = chance.pick(NAMES);
  const lastName = chance.pick(NAMES);
  const metadata = chance.happens(0.5) ? { n: chance.below(9), deep: { list: [1, "two", null] } } : {};
  const body = { email, firstName, lastName, metadata, ...(subscribed === undefined ? {} : { subscribed }) };
  const request = { ...base(project, "POST", ""), body };
  if (chance.happens(0.1)) {
    await ask(
      world,
      chance,
      { ...request, body: { ...body, email: "no address" } },
      { status: 422, param: "email" },
    );
    return;
  }
  if (contactOf(project, email) !== undefined) {
    await ask(world, chance, request, { status: 409, code: "duplicate" });
    return;
  }
  const made = await ask(world, chance, request, { status: 201 });
  const shownEmail = textOf(membersOf(made.body).email);
  agree(shownEmail.toLowerCase(), email.toLowerCase(), "the contact's address");
  const contact: Contact = {
    id: textOf(membersOf(made.body).id),
    email: shownEmail,
    firstName,
    lastName,
    metadata,
    subscribed: subscribed ?? true,
    unsubscribedAt: subscribed === false ? now : null,
    createdAt: now,
  };
  agree(made.body, { ...contactView(contact), id: isIdOf("con") }, "the new contact");
  project.contacts.push(contact);
};

export const changeContact: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ contacts }) => contacts);
  if (found === null) return;
  const { project, item } = found;
  const body = {
    ...(chance.happens(0.5) ? { firstName: chance.pick(NAMES) } : {}),
    ...(chance.happens(0.5) ? { lastName: chance.pick(NAMES) } : {}),
    ...(chance.happens(0.5) ? { metadata: { changed: world.next() } } : {}),
  };
  const shown = await askToChange(world, chance, base(project, "PATCH", `/${item.id}`), item, body);
  const updatedAt = shownTime(world.stage.clock.now());
  agree(
    shown,
    { ...contactView(item), ...(Object.keys(body).length > 0 ? { updatedAt } : {}) },
    "the contact",
  );
};

/** Unsubscribing records the time once. Subscribing again clears it. */
export const turnContact: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ contacts }) => contacts);
  if (found === null) return;
  const { project, item } = found;
  const verb = chance.pick(["unsubscribe", "resubscribe"]);
  const turned = await ask(world, chance, base(project, "POST", `/${item.id}/${verb}`), { status: 200 });
  if (verb === "resubscribe") Object.assign(item, { subscribed: true, unsubscribedAt: null });
  else if (item.subscribed)
    Object.assign(item, { subscribed: false, unsubscribedAt: world.stage.clock.now() });
  agree(turned.body, contactView(item), `the contact after ${verb}`);
};

export const readContact: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ contacts }) => contacts);
  if (found === null) return;
  const { project, item } = found;
  const read = await ask(world, chance, base(project, "GET", `/${item.id}`), { status: 200 });
  agree(read.body, contactView(item), "the contact");
};

export const dropContact: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const contact = some(chance, project.contacts);
  if (contact === undefined) return;
  await ask(world, chance, base(project, "DELETE", `/${contact.id}`), { status: 204 });
  project.contacts.splice(project.contacts.indexOf(contact), 1);
  await ask(world, chance, base(project, "DELETE", `/${contact.id}`), { status: 404 });
};
