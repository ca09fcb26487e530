import { join, messageOf, recipientsIn, roomOf, take } from "./accept.ts";
import { agree, isIdOf, itemsOf, membersOf, shownTime, textOf } from "./agree.ts";
import { type Deed, someOf, someProject } from "./choice.ts";
import { type Draft, draftOf, type Item } from "./items.ts";
import { readRecord } from "./records.ts";
import { type Ask, ask, NEVER } from "./request.ts";
import { DAY_MS, type Message, type Project, statusOf, type World } from "./state.ts";

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "emails:read" : "emails:send";
  return { account: project.account, project, method, path: `/v1/emails${path}`, scope };
}

/** The error if a project may not send, or has no volume left; otherwise null. */
function refusalTo(
  project: Project,
  room: number,
  { item, fault }: Draft,
): { status: number; code?: string; param?: string } | null {
  if (fault !== null) return fault;
  if (project.suspendedAt !== null) return { status: 403, code: "sender_suspended" };
  return recipientsIn(item) > room ? { status: 403, code: "daily_quota_exceeded" } : null;
}

/** Adds a message that was accepted under that id. If it is from an inbox, it begins a thread there. */
async function admit(world: World, project: Project, item: Item, id: string): Promise<Message> {
  const now = world.stage.clock.now();
  const message = { ...messageOf(project, item, now), id };
  take(project, message.recipients.length, now);
  project.messages.push(message);
  const inbox = project.inboxes.find(({ address }) => address === message.from);
  if (inbox === undefined) return message;
  const record = membersOf((await ask(world, NEVER, base(project, "GET", `/${id}`), { status: 200 })).body);
  const thread = {
    id: textOf(record.threadId),
    inbox,
    subject: message.subject,
    messages: [],
    lastMessageAt: now,
    createdAt: now,
    replies: [],
  };
  agree(
    project.threads.some((other) => other.id === thread.id),
    false,
    "that a new mail begins a thread",
  );
  join(project, message, thread);
  return message;
}

export const send: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const now = world.stage.clock.now();
  const room = roomOf(project, now);
  const draft = draftOf(world, chance, project, project.suspendedAt === null && room > 0);
  const request = { ...base(project, "POST", ""), body: draft.item };
  const refusal = refusalTo(project, room, draft);
  if (refusal !== null) {
    await ask(world, chance, request, refusal);
    return;
  }
  const accepted = await ask(world, chance, request, { status: 202 });
  const message = await admit(world, project, draft.item, textOf(membersOf(accepted.body).id));
  const { scheduledAt } = message;
  // The answer does not tell that every recipient is rejected.
  const status = scheduledAt === null ? "queued" : "accepted";
  const shown = scheduledAt === null ? {} : { scheduledAt: shownTime(scheduledAt) };
  agree(accepted.body, { id: isIdOf("msg"), status, ...shown }, "what is accepted");
};

/** Each item succeeds or fails by itself. They use up the day's volume in order. */
export const sendMany: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const now = world.stage.clock.now();
  const size = chance.pick([0, 1, 3, 5, 101]);
  const start = roomOf(project, now);
  const drafts = Array.from({ length: size }, () =>
    draftOf(world, chance, project, project.suspendedAt === null && start > 0),
  );
  const request = { ...base(project, "POST", "/batch"), body: { emails: drafts.map(({ item }) => item) } };
  if (size === 0 || size > 100) {
    await ask(world, chance, request, { status: 422, param: "emails" });
    return;
  }
  const answer = await ask(world, chance, request, { status: 207 });
  const data = itemsOf(membersOf(answer.body).data);
  agree(data.length, size, "the results of a batch");
  let room = start;
  for (const [at, draft] of drafts.entries()) {
    const refusal = refusalTo(project, room, draft);
    const result = membersOf(data[at]);
    if (refusal !== null) {
      const { code } = refusal;
      agree(result, { id: undefined, error: code === undefined ? {} : { code } }, `item ${at} of a batch`);
      continue;
    }
    agree(result, { id: isIdOf("msg"), error: undefined }, `item ${at} of a batch`);
    const message = await admit(world, project, draft.item, textOf(result.id));
    room -= message.recipients.length;
  }
};

/** If one recipient waits for its time, the message shows `accepted`, and all of it can be moved. */
const isWaiting = (message: Message): boolean => statusOf(message) === "accepted";

export const reschedule: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ messages }) => preferring(messages, isWaiting, chance.happens(0.8)));
  if (found === null) return;
  const { project, item } = found;
  const now = world.stage.clock.now();
  const ahead = chance.pick([-60_000, 60_000, 3_600_000, 5 * DAY_MS, 31 * DAY_MS]);
  const request = { ...base(project, "PATCH", `/${item.id}`), body: { scheduledAt: shownTime(now + ahead) } };
  if (!isWaiting(item)) {
    if (ahead < 30 * DAY_MS) await ask(world, chance, request, { status: 409, code: "invalid_state" });
    return;
  }
  if (ahead > 30 * DAY_MS) {
    await ask(world, chance, request, { status: 422, code: "schedule_out_of_range", param: "scheduledAt" });
    return;
  }
  const moved = await ask(world, chance, request, { status: 200 });
  agree(moved.body, { id: item.id, status: "accepted" }, "the moved message");
  item.scheduledAt = now + ahead;
  for (const recipient of item.recipients)
    if (recipient.status === "accepted") recipient.due = { from: item.scheduledAt, to: item.scheduledAt };
};

export const cancel: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ messages }) => preferring(messages, isWaiting, chance.happens(0.8)));
  if (found === null) return;
  const { project, item } = found;
  const request = base(project, "POST", `/${item.id}/cancel`);
  if (!isWaiting(item)) {
    await ask(world, chance, request, { status: 409, code: "invalid_state" });
    return;
  }
  const canceled = await ask(world, chance, request, { status: 200 });
  const at = world.stage.clock.now();
  for (const recipient of item.recipients) {
    if (recipient.status !== "accepted") continue;
    Object.assign(recipient, { status: "failed", reason: "canceled", due: null });
    recipient.events.push({ type: "failed", at });
  }
  agree(canceled.body, { id: item.id, status: statusOf(item) }, "the canceled message");
};

function preferring<Item>(
  items: readonly Item[],
  wanted: (item: Item) => boolean,
  prefer: boolean,
): readonly Item[] {
  const fit = items.filter(wanted);
  return prefer ? fit : items;
}

export const readEmail: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ messages }) => messages);
  if (found !== null) await readRecord(world, chance, found.project, found.item);
};
