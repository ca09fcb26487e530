import { ADDRESSES, simulated } from "./addresses.ts";
import { agree, isIdOf, itemsOf, membersOf, shownTime, shownTimeOrNull, textOf } from "./agree.ts";
import { type Deed, someProject, subset } from "./choice.ts";
import { type Ask, ask } from "./request.ts";
import { DAY_MS, type Project, type Suppression, suppressionOf } from "./state.ts";

export function suppressionView({ id, expiresAt, createdAt, ...facts }: Suppression): object {
  return {
    ...facts,
    id: knownId({ id }),
    expiresAt: shownTimeOrNull(expiresAt),
    createdAt: shownTime(createdAt),
  };
}

/** The id of a bounce's entry is unknown until the entry is shown. */
function knownId({ id }: { id: string }): unknown {
  return id === "" ? isIdOf("sup") : id;
}

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "suppressions:read" : "suppressions:write";
  return { account: project.account, project, method, path: `/v1/suppressions${path}`, scope };
}

/** The entry of an address that is listed at that time. */
export function present(project: Project, email: string, now: number): Suppression | undefined {
  const entry = suppressionOf(project, email);
  return entry === undefined || isOver(entry, now) ? undefined : entry;
}

export function isOver({ expiresAt }: Suppression, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Adds an entry, which replaces an expired one. */
export function enter(project: Project, entry: Suppression): void {
  const at = project.suppressions.findIndex(({ email }) => email === entry.email);
  if (at >= 0) project.suppressions.splice(at, 1);
  project.suppressions.push(entry);
}

const BLOCKED = [...ADDRESSES, simulated("delivered")] as const;

export const block: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const now = world.stage.clock.now();
  const email = chance.pick(BLOCKED);
  const given = chance.happens(0.3) ? email.toUpperCase() : email;
  const note = chance.pick(["asked for it", null]);
  const expiresAt = chance.pick([null, now + 60_000, now + 3_600_000, now + 3 * DAY_MS]);
  const body = { email: given, note, expiresAt: shownTimeOrNull(expiresAt) };
  const request = { ...base(project, "POST", ""), body };
  if (chance.happens(0.1)) {
    await ask(world, chance, { ...request, body: { email: "@" } }, { status: 422, param: "email" });
    return;
  }
  const there = present(project, email, now);
  if (there !== undefined) {
    const shown = await ask(world, chance, request, { status: 200 });
    agree(shown.body, suppressionView(there), "the entry that is there");
    return;
  }
  const made = await ask(world, chance, request, { status: 201 });
  const entry: Suppression = {
    id: textOf(membersOf(made.body).id),
    email,
    reason: "manual",
    bounceType: null,
    messageId: null,
    note,
    expiresAt,
    createdAt: now,
  };
  agree(made.body, { ...suppressionView(entry), id: isIdOf("sup") }, "the new entry");
  enter(project, entry);
};

export const blockMany: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const now = world.stage.clock.now();
  const emails: string[] = subset(chance, BLOCKED);
  const wrong = chance.happens(0.3);
  if (wrong) emails.splice(chance.below(emails.length + 1), 0, "not an address");
  const request = { ...base(project, "POST", "/batch"), body: { emails } };
  if (emails.length === 0) {
    await ask(world, chance, request, { status: 422, param: "emails" });
    return;
  }
  const answer = await ask(world, chance, request, { status: 207 });
  const data = itemsOf(membersOf(answer.body).data);
  agree(data.length, emails.length, "the items of a batch");
  emails.forEach((email, at) => {
    const item = membersOf(data[at]);
    if (email === "not an address") {
      agree(
        item.error,
        { code: "invalid_email", param: (text: unknown) => typeof text === "string" },
        "its error",
      );
      return;
    }
    const there = present(project, email, now);
    agree(item, { id: knownId(there ?? { id: "" }), error: undefined }, `the item of ${email}`);
    if (there === undefined)
      enter(project, {
        id: textOf(item.id),
        email,
        reason: "manual",
        bounceType: null,
        messageId: null,
        note: null,
        expiresAt: null,
        createdAt: now,
      });
  });
};

/** Removing succeeds whether or not the address is listed. */
export const unblock: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const email = chance.pick(BLOCKED);
  const written = encodeURIComponent(chance.happens(0.3) ? email.toUpperCase() : email);
  await ask(world, chance, base(project, "DELETE", `?email=${written}`), { status: 204 });
  const at = project.suppressions.findIndex((entry) => entry.email === email);
  if (at >= 0) project.suppressions.splice(at, 1);
};
