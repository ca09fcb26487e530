import type { Chance } from "../support/chance.ts";
import { agree, differ, itemsOf, membersOf, textOf } from "./agree.ts";
import { type Deed, someAccount, someProject } from "./choice.ts";
import * as contacts from "./contacts.ts";
import { type List, listsOf, listsOfAccount } from "./lists.ts";
import { ask } from "./request.ts";
import * as suppressions from "./suppressions.ts";
import * as templates from "./templates.ts";
import type { World } from "./state.ts";
import { send } from "./emails.ts";

/** The operations between the pages of a list. */
const MEANWHILE = [
  contacts.makeContact,
  suppressions.block,
  templates.makeTemplate,
  send,
  contacts.dropContact,
] as const;
const MOST_PAGES = 400;
const LIMITS = [1, 2, 3, 7, 20, 100] as const;

function queryOf(list: List, more: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams({ ...list.query, ...more }).toString();
  return text === "" ? list.path : `${list.path}?${text}`;
}

function asking({ account, project, scope, wide, path }: List, target = path) {
  const only = wide === true ? { allows: ({ project: own }: { project: unknown }) => own === null } : {};
  return { account, project, scope, method: "GET", path: target, ...only };
}

/** The identity of an item on a page. For a suppression it is the address. */
function nameOf({ path }: List, item: unknown): string {
  const { id, email } = membersOf(item);
  return textOf(path === "/v1/suppressions" ? email : id);
}

/** Reads a list to its end: exactly the model's items, in order and once each, whatever the limit. */
export async function walk(world: World, chance: Chance, list: List, meanwhile: Deed | null): Promise<void> {
  const limit = chance.pick([...LIMITS]);
  const named: Record<string, string> = limit === 20 && chance.happens(0.5) ? {} : { limit: String(limit) };
  const seen: string[] = [];
  const always = new Set(list.items().map(({ id }) => id));
  const ever = new Set(always);
  let cursor: string | null = null;
  for (let page = 0; ; page++) {
    if (page > MOST_PAGES) differ(`${list.path} does not end`);
    const now = list.items();
    for (const id of always) if (!now.some((item) => item.id === id)) always.delete(id);
    for (const { id } of now) ever.add(id);
    const path = queryOf(list, { ...named, ...(cursor === null ? {} : { cursor }) });
    const body = membersOf((await ask(world, chance, asking(list, path), { status: 200 })).body);
    const data = itemsOf(body.data);
    if (data.length > limit) differ(`${path}: ${data.length} items`);
    for (const item of data) compareItem(list, item, now);
    seen.push(...data.map((item) => nameOf(list, item)));
    if (body.nextCursor === null) break;
    cursor = textOf(body.nextCursor);
    if (page === 0 && chance.happens(0.2)) await misuse(world, chance, list, cursor);
    if (meanwhile !== null) await meanwhile(world, chance);
  }
  compareWalk(list, seen, always, ever, meanwhile === null);
}

function compareItem(list: List, item: unknown, now: ReturnType<List["items"]>): void {
  const name = nameOf(list, item);
  const expected = now.find(({ id }) => id === name);
  if (expected === undefined)
    differ(`${queryOf(list, {})} shows ${name}, which the model does not have there`);
  agree(item, expected?.view, `${name} in ${queryOf(list, {})}`);
}

function compareWalk(
  list: List,
  seen: readonly string[],
  always: ReadonlySet<string>,
  ever: ReadonlySet<string>,
  still: boolean,
): void {
  const where = `a walk of ${queryOf(list, {})}`;
  if (new Set(seen).size !== seen.length) differ(`${where} shows something twice: ${seen.join(" ")}`);
  for (const id of seen) if (!ever.has(id)) differ(`${where} shows ${id}`);
  for (const id of always) if (!seen.includes(id)) differ(`${where} leaves ${id} out`);
  const order = list.items().map(({ id }) => id);
  const inOrder = order.filter((id) => seen.includes(id) && always.has(id));
  agree(
    seen.filter((id) => inOrder.includes(id)),
    inOrder,
    `the order of ${where}`,
  );
  if (still) agree([...seen], order, where);
}

/** A cursor is only valid unchanged, for the query that returned it. */
async function misuse(world: World, chance: Chance, list: List, cursor: string): Promise<void> {
  const refused = { status: 400, param: "cursor" };
  const end = cursor.slice(-6, -1);
  const altered = `${cursor.slice(0, -6)}${end === "AAAAA" ? "BBBBB" : "AAAAA"}${cursor.slice(-1)}`;
  await ask(world, chance, asking(list, queryOf(list, { cursor: altered })), refused);
  if (list.path === "/v1/emails" && list.query.direction === undefined)
    await ask(world, chance, asking(list, queryOf(list, { cursor, direction: "outbound" })), refused);
  for (const limit of ["0", "101", "x"])
    await ask(world, chance, asking(list, queryOf(list, { limit })), { status: 422, param: "limit" });
}

/** A list of some project or account, with or without other operations in between. */
export const walkList: Deed = async (world, chance) => {
  const lists = chance.happens(0.85)
    ? listsOf(world, chance, someProject(world, chance))
    : listsOfAccount(someAccount(world, chance));
  const list = lists[chance.below(lists.length)];
  if (list === undefined) return;
  await walk(world, chance, list, chance.happens(0.5) ? chance.pick([...MEANWHILE]) : null);
};
