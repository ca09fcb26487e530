import { agree, isIdOf, itemsOf, membersOf, shownTime, textOf } from "./agree.ts";
import { type Deed, some, someOf, someProject } from "./choice.ts";
import { type Ask, ask, askToChange } from "./request.ts";
import type { Inbox, Project } from "./state.ts";

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "inboxes:read" : "inboxes:write";
  return { account: project.account, project, method, path: `/v1/inboxes${path}`, scope };
}

function inboxView(project: Project, { domain, createdAt, ...facts }: Inbox): object {
  return { ...facts, senderId: project.id, domainId: domain.id, createdAt: shownTime(createdAt) };
}

export const makeInbox: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const domain = some(chance, project.domains);
  const localPart = chance.pick(["desk", "help", "sales"]);
  if (domain === undefined) {
    const body = { address: `${localPart}@elsewhere.example.org` };
    // An address at a foreign domain is refused. The exact error is left open.
    const status = 422;
    await ask(world, chance, { ...base(project, "POST", ""), body }, { status });
    return;
  }
  const address = `${localPart}@${domain.name}`;
  const displayName = chance.pick(["Desk", ""]);
  const type = chance.pick([undefined, "sending", "agent"] as const);
  const where = chance.pick([
    { address },
    { address: address.toUpperCase() },
    { localPart, domainId: domain.id },
  ]);
  const request = { ...base(project, "POST", ""), body: { ...where, displayName, type } };
  if (project.inboxes.some((other) => other.address === address)) {
    await ask(world, chance, request, { status: 409, code: "duplicate" });
    return;
  }
  const made = await ask(world, chance, request, { status: 201 });
  const inbox: Inbox = {
    id: textOf(membersOf(made.body).id),
    domain,
    address,
    displayName,
    type: type ?? "agent",
    createdAt: world.stage.clock.now(),
  };
  agree(made.body, { ...inboxView(project, inbox), id: isIdOf("inb") }, "the new inbox");
  project.inboxes.push(inbox);
};

export const changeInbox: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ inboxes }) => inboxes);
  if (found === null) return;
  const { project, item } = found;
  const type: Inbox["type"] = chance.pick(["sending", "agent"]);
  const body = { displayName: `Desk ${world.next()}`, type };
  const shown = await askToChange(world, chance, base(project, "PATCH", `/${item.id}`), item, body);
  agree(shown, inboxView(project, item), "the changed inbox");
};

/** All inboxes of a project, or of one of its domains: a flat array, whose order is left open. */
export const listInboxes: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const domain = chance.happens(0.5) ? some(chance, project.domains) : undefined;
  const query = domain === undefined ? "" : `?domainId=${domain.id}`;
  const listed = await ask(world, chance, base(project, "GET", query), { status: 200 });
  const byId = (one: unknown, other: unknown) =>
    textOf(membersOf(one).id) < textOf(membersOf(other).id) ? -1 : 1;
  const expected = project.inboxes
    .filter((inbox) => domain === undefined || inbox.domain === domain)
    .map((inbox) => inboxView(project, inbox))
    .sort(byId);
  agree([...itemsOf(membersOf(listed.body).data)].sort(byId), expected, "the inboxes");
};

/**
 * If an inbox has only simulated mail, it can be deleted. Its threads are deleted too; its messages stay without
 * them.
 */
export const dropInbox: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ inboxes }) => inboxes);
  if (found === null) return;
  const { project, item } = found;
  await ask(world, chance, base(project, "DELETE", `/${item.id}`), { status: 204 });
  project.inboxes.splice(project.inboxes.indexOf(item), 1);
  project.threads = project.threads.filter(({ inbox }) => inbox !== item);
  for (const message of project.messages.filter(({ inboxId }) => inboxId === item.id))
    Object.assign(message, { inboxId: null, thread: null });
  await ask(world, chance, base(project, "GET", `/${item.id}`), { status: 404 });
};
