import { ERROR_STATUS } from "../../src/http/routing/errors.ts";
import { makePath } from "./estate.ts";
import { faultsOf, undocumentedIn } from "./json-schema.ts";
import { wireFaults } from "./mime-headers.ts";
import { fill, headerFaults, type Operation } from "./openapi-document.ts";
import type { Presented, RawAnswer, World } from "./tenants.ts";

/** The facts of a request that a fault report shows. */
const SHOWN_CHARS = 300;

/** One request of the attacks. */
export interface Attack {
  operation: Operation;
  /** Place of the fault, and a description. */
  label: string;
  path: string;
  headers?: Record<string, string>;
  body: unknown;
}

/** Results of the attacks so far. */
export interface Tally {
  world: World;
  requests: number;
  accepted: number;
  composed: number;
  faults: string[];
}

export const newTally = (world: World): Tally => ({
  world,
  requests: 0,
  accepted: 0,
  composed: 0,
  faults: [],
});

function presentedFor(world: World, operation: Operation, headers: Record<string, string> = {}): Presented {
  return { key: operation.level === "account" ? world.home.wide : world.home.key, headers };
}

/** Text that no message to a client may contain: stack traces, SQL, paths of our files. */
const INSIDE = /\bat [\w.<>]+ \(|node_modules|\/src\/|SQLITE|SELECT .* FROM|INSERT INTO|\.ts:\d+/;

/** Returns the faults of an answer that hold for any request. */
function answerFaults(world: World, operation: Operation, answer: RawAnswer): string[] {
  const { status, headers, text, json } = answer;
  const faults: string[] = [];
  if (status >= 500) faults.push(`${status}`);
  if (operation.answers.has(status)) faults.push(...headerFaults(operation, status, headers));
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(headers.get("x-request-id") ?? "")) faults.push("no X-Request-Id");
  if (!operation.answers.has(status)) faults.push(`${status} is not documented`);
  if (headers.has("x-injected")) faults.push("an injected header");
  const schema = operation.answers.get(status) ?? null;
  if (schema !== null)
    faults.push(...faultsOf(world.document, schema, json), ...undocumentedIn(world.document, schema, json));
  if (status < 400) return faults;
  const types: Readonly<Record<string, number>> = ERROR_STATUS;
  if (types[json?.error?.type] !== status) faults.push(`error.type ${json?.error?.type} with ${status}`);
  if (json?.error?.requestId !== headers.get("x-request-id")) faults.push("another requestId");
  if (INSIDE.test(json?.error?.message ?? "")) faults.push("a message that shows our inside");
  return faults.length === 0 || text.length < SHOWN_CHARS ? faults : [...faults, text.slice(0, SHOWN_CHARS)];
}

/** Ids of messages that an answer says were made. */
function messagesIn({ status, json }: RawAnswer): string[] {
  if (status !== 202 && status !== 207) return [];
  const ids: unknown[] = [
    json.id,
    json.messageId,
    ...(json.data ?? []).map((item: { id?: string }) => item.id),
  ];
  return ids.filter((id) => typeof id === "string").filter((id) => id.startsWith("msg_"));
}

/** Names of the fields that a body asks for, in itself and in its items. */
function askedIn(body: unknown): string[] {
  // The service takes a body that begins with a byte order mark (RFC 8259 §8.1).
  const value: unknown = typeof body === "string" ? JSON.parse(body.replace(/^\uFEFF/, "")) : body;
  if (!isObject(value)) return [];
  const items = Array.isArray(value.emails) ? value.emails.flatMap(askedIn) : [];
  return [...(isObject(value.headers) ? Object.keys(value.headers) : []), ...items];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Makes the request, then checks the answer and the bytes of every message that it made. */
export async function attack(tally: Tally, { operation, label, path, headers, body }: Attack): Promise<void> {
  const { world } = tally;
  const answer = await world.call(operation.method, path, presentedFor(world, operation, headers), body);
  tally.requests++;
  if (answer.status < 300) tally.accepted++;
  const say = (fault: string): void => void tally.faults.push(`${operation.key}, ${label}: ${fault}`);
  for (const fault of answerFaults(world, operation, answer)) say(fault);
  for (const id of messagesIn(answer)) {
    tally.composed++;
    const raw = await world.call("GET", `/v1/emails/${id}/raw`, { key: world.home.key });
    if (raw.status !== 200) say(`raw answers ${raw.status} ${raw.text.slice(0, SHOWN_CHARS)}`);
    else for (const fault of wireFaults(raw.text, askedIn(body))) say(`the composed bytes have ${fault}`);
    const record = await world.call("GET", `/v1/emails/${id}`, { key: world.home.key });
    if (record.status !== 200) say(`its record answers ${record.status}`);
  }
}

/** Makes new resources for the operation's path, so that an earlier request cannot change the result. */
export async function freshPath(world: World, operation: Operation): Promise<string[]> {
  return (await makePath(operation, world, world.home)).map(({ id }) => id);
}

/**
 * Runs all attacks on one resource. If `renew` is set and the service accepts an attack, makes the resource again,
 * because the attack may have deleted it.
 */
export async function attackAll(
  tally: Tally,
  operation: Operation,
  attacks: Iterable<(path: string) => Omit<Attack, "operation">>,
  renew = true,
): Promise<void> {
  let values = await freshPath(tally.world, operation);
  for (const make of attacks) {
    const { accepted } = tally;
    await attack(tally, { operation, ...make(fill(operation, values)) });
    if (renew && tally.accepted > accepted && values.length > 0 && operation.method !== "GET")
      values = await freshPath(tally.world, operation);
  }
}
