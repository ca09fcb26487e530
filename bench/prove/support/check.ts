/** Compares the promises of a ledger with the arrivals and with the service's records. */
import { withLive } from "./autopsy.ts";
import type { Promised } from "./ledger.ts";
import { mailBytes, recipientOf } from "./load.ts";
import { EVENTS, type Ground, HOOK } from "./service.ts";
import { eventKey } from "./sink.ts";
import { type Finding, fact, none } from "./table.ts";

/** Findings of the check. Each list names items, so that a fault can be followed up. */
export interface Checked {
  sends: number;
  mails: number;
  /** `202`s whose recipient got nothing at the sink. */
  lostSends: string[];
  /** `250`s without a message. */
  lostMails: string[];
  /** Messages whose `/raw` does not end with the bytes that were brought. */
  damagedMails: string[];
  /** Idempotency-Keys with several messages, or with a message of another id than the answer's. */
  doubledSends: string[];
  /** Events of promised messages that were never pushed. */
  missingEvents: string[];
  /** Recipients that got the message under several Message-IDs. */
  changedIds: string[];
  /** Recipients that got several copies. */
  duplicates: string[];
}

/** Requests to the service at a time. */
const AT_A_TIME = 16;
const PAGE = 100;
const POLL_MS = 200;
/** Time limit of a drain even while it moves, milliseconds. */
const LONGEST_DRAIN_MS = 600_000;

/** Runs `work` over all items, a limited number at a time. */
async function each<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  const lane = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

function recipientsOf(promises: readonly Promised[]): string[] {
  return promises.filter(({ kind }) => kind === "send").map(({ n }) => recipientOf(n));
}

/**
 * Waits until every promised send has reached the sink and everything has a result, webhook deliveries included.
 * Gives up if nothing has moved for `stillMs`. Resolves with the time it took, milliseconds.
 */
export async function drained(
  ground: Ground,
  promises: readonly Promised[],
  stillMs: number,
): Promise<number> {
  const began = performance.now();
  const recipients = recipientsOf(promises);
  let last = "";
  let movedAt = began;
  while (performance.now() - began < LONGEST_DRAIN_MS) {
    const missing = recipients.filter((to) => !ground.sink.received.has(to)).length;
    const open = unsettled(ground);
    const state = `${missing} ${open} ${ground.hooks.deliveries.size}`;
    if (state !== last) movedAt = performance.now();
    last = state;
    if (missing === 0 && open === 0) return performance.now() - began;
    if (performance.now() - movedAt > stillMs) break;
    await Bun.sleep(POLL_MS);
  }
  console.error(`not drained, ${last} (not at the sink, without a result, pushed)`);
  return performance.now() - began;
}

/** Returns the number of messages and webhook deliveries without a result. */
export function unsettled(ground: Ground): number {
  return withLive(ground, (db) =>
    db
      .query<{ open: number }, []>(
        `SELECT (SELECT COUNT(*) FROM messages
            WHERE status IN ('accepted', 'queued', 'sending', 'delivery_delayed'))
          + (SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'pending') + (SELECT COUNT(*) FROM fan_outs) AS open`,
      )
      .all()
      .reduce((sum, { open }) => sum + open, 0),
  );
}

/** Returns all outbound messages by recipient, over all pages of the list. */
async function messagesByRecipient(ground: Ground): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await ground.service.call(
      "GET",
      `/v1/emails?direction=outbound&limit=${PAGE}${after}`,
    );
    if (status !== 200) throw new Error(`the list says ${status}`);
    for (const { id, to } of body.data as { id: string; to: string[] }[])
      for (const address of to) found.set(address, [...(found.get(address) ?? []), id]);
    cursor = body.nextCursor;
  } while (cursor !== null);
  return found;
}

/** Checks every promise. With `events`, every event in a message's record must have been pushed. */
export async function check(
  ground: Ground,
  promises: readonly Promised[],
  { events = true }: { events?: boolean } = {},
): Promise<Checked> {
  const { sink } = ground;
  const stored = await messagesByRecipient(ground);
  const checked: Checked = {
    sends: 0,
    mails: 0,
    lostSends: [],
    lostMails: [],
    damagedMails: [],
    doubledSends: [],
    missingEvents: [],
    changedIds: [...sink.received].filter(([, { messageIds }]) => messageIds.size > 1).map(([to]) => to),
    duplicates: [...sink.received].filter(([, { count: copies }]) => copies > 1).map(([to]) => to),
  };
  for (const { kind, n, id } of promises) {
    if (kind === "mail") checked.mails++;
    else {
      checked.sends++;
      const to = recipientOf(n);
      const ids = stored.get(to) ?? [];
      if (!sink.received.has(to)) checked.lostSends.push(`${to} ${id}`);
      if (ids.length !== 1 || ids[0] !== id) checked.doubledSends.push(`${to} ${id}: ${ids.join(" ")}`);
    }
  }
  await each(
    promises.filter(({ kind }) => kind === "mail"),
    (promised) => checkBytes(ground, promised, checked),
  );
  if (events) checkEvents(ground, promises, checked);
  return checked;
}

async function checkBytes(ground: Ground, { n, id }: Promised, checked: Checked): Promise<void> {
  const { service } = ground;
  const response = await fetch(`${service.url}/v1/emails/${id}/raw`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  const kept = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) checked.lostMails.push(`mail ${n} ${id}: ${response.status}`);
  // The service puts its own trace fields above the bytes, and nothing else.
  else if (!isMailBelowTrace(kept, Buffer.from(mailBytes(n), "latin1")))
    checked.damagedMails.push(`mail ${n} ${id}`);
}

const TRACE = /^(?:(?:Return-Path|Authentication-Results|Received):[^\n]*\n(?:[ \t][^\n]*\n)*)*$/i;

function isMailBelowTrace(kept: Buffer, brought: Buffer): boolean {
  const above = kept.length - brought.length;
  return above >= 0 && kept.subarray(above).equals(brought) && TRACE.test(kept.toString("latin1", 0, above));
}

interface StoredEvent {
  message: string;
  type: string;
  at: number;
}

/** Checks that each promised message has events, and that each of them was pushed. */
function checkEvents(ground: Ground, promises: readonly Promised[], checked: Checked): void {
  const stored = withLive(ground, (db) =>
    db.query<StoredEvent, []>("SELECT message_id AS message, type, created_at AS at FROM events").all(),
  );
  const without = new Set(promises.map(({ id }) => id));
  for (const { message, type, at } of stored) {
    without.delete(message);
    if (!EVENTS.includes(type)) continue;
    if (!ground.hooks.events.has(eventKey(HOOK, message, type, new Date(at).toISOString())))
      checked.missingEvents.push(`${message} ${type}`);
  }
  for (const id of without) checked.missingEvents.push(`${id}: no events`);
}

/** Returns the first names of a list, to show after a failed row. */
const NAMED = 3;

/** Returns the rows of a table that every run has. Names of faulty items go to stderr. */
export function checkedFindings(checked: Checked): Finding[] {
  const lists: [string, string[]][] = [
    ["202s lost", checked.lostSends],
    ["250s lost", checked.lostMails],
    ["messages with other bytes", checked.damagedMails],
    ["Idempotency-Keys with other than one message", checked.doubledSends],
    ["webhook events never pushed", checked.missingEvents],
    ["recipients with several Message-IDs", checked.changedIds],
  ];
  for (const [name, items] of lists)
    if (items.length > 0) console.error(`${name}: ${items.slice(0, NAMED).join("; ")}`);
  return [
    fact("sends answered 202", checked.sends),
    fact("messages answered 250", checked.mails),
    ...lists.map(([name, items]) => none(name, items.length)),
  ];
}
