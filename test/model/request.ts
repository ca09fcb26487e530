import type { Chance } from "../support/chance.ts";
import { agree, differ, membersOf, show } from "./agree.ts";
import { strangersOf } from "./strangers.ts";
import type { Account, KeptAnswer, Key, Project, World } from "./state.ts";

/** A request of the model without its key. */
export interface Ask {
  account: Account;
  /** Null: a route of the account. */
  project: Project | null;
  method: string;
  path: string;
  body?: unknown;
  /** The scope that the key needs. */
  scope: string;
  /** True if only account-wide keys may send it. */
  wide?: boolean;
  /** The key to use, if it matters. */
  by?: Key;
  /** Returns which keys may send it, apart from their scopes. */
  allows?: (key: Key) => boolean;
  /** It takes no Idempotency-Key. */
  plain?: boolean;
}

export interface Expected {
  status: number;
  type?: string;
  code?: string;
  param?: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: unknown;
}

/** The caller: the Authorization and project headers. */
export type Presented = Readonly<Record<string, string>>;

/** The code of a refusal, by its status. */
const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found",
  405: "method_not_allowed",
  409: "conflict",
  413: "payload_too_large",
  422: "validation_error",
  429: "rate_limited",
};

const STRANGER_PROBABILITY = 0.15;
const IDEMPOTENCY_PROBABILITY = 0.3;
const REPEAT_PROBABILITY = 0.3;

/** No unauthorized callers and no repeats, for requests that only read. */
export const NEVER = {
  number: () => 0,
  below: () => 0,
  happens: () => false,
  pick: <Item>(items: readonly [Item, ...Item[]]): Item => items[0],
};

/** Sends the request with an allowed key, and compares. Sometimes sends it first with a key that is refused. */
export async function ask(world: World, chance: Chance, asked: Ask, expected: Expected): Promise<Answer> {
  if (chance.happens(STRANGER_PROBABILITY)) {
    const { presented, refusal } = strangersOf(world, chance, asked);
    await exchange(world, asked, presented, refusal);
  }
  const by = asked.by ?? keyFor(chance, asked);
  const presented = presentedBy(chance, by, asked.project);
  if (asked.method !== "POST" || asked.plain === true || !chance.happens(IDEMPOTENCY_PROBABILITY))
    return exchange(world, asked, presented, expected);
  const key = `key ${world.next()}`;
  const answer = await exchange(world, asked, { ...presented, "idempotency-key": key }, expected);
  if (answer.status >= 300) return answer;
  const { account, project, path, body, scope } = asked;
  const { status, text } = answer;
  const at = world.stage.clock.now();
  const kept = { account, project, by, path, key, body, scope, status, text, at };
  world.kept.push(kept);
  if (chance.happens(REPEAT_PROBABILITY)) await repeat(world, chance, kept);
  return answer;
}

/** Requests a change of a resource's fields and checks them afterwards. Returns the shown resource. */
export async function askToChange<Thing extends object>(
  world: World,
  chance: Chance,
  asked: Ask,
  thing: Thing,
  body: Partial<Thing>,
): Promise<Answer["body"]> {
  const changed = await ask(world, chance, { ...asked, body }, { status: 200 });
  Object.assign(thing, body);
  return changed.body;
}

/** Repeats an answered request: the same answer comes back, and nothing is done. */
export async function repeat(world: World, chance: Chance, kept: KeptAnswer): Promise<void> {
  const asked: Ask = { ...kept, method: "POST" };
  const presented = { ...presentedBy(chance, kept.by, kept.project), "idempotency-key": kept.key };
  const changed = await world.stage.guard.changes(async () => {
    const answer = await send(world, asked, presented);
    const where = `a repeated POST ${kept.path}`;
    if (answer.status !== kept.status || answer.text !== kept.text)
      differ(
        `${where} is answered ${answer.status} ${answer.text}, at first it was ${kept.status} ${kept.text}`,
      );
    if (answer.headers.get("idempotent-replayed") !== "true") differ(`${where} is not said to be replayed`);
  });
  if (changed.length > 0) differ(`a repeated POST ${kept.path} changes ${changed.join(", ")}`);
  const other = { ...asked, body: { ...membersOf(kept.body), another: true } };
  await exchange(world, other, presented, { status: 409, code: "idempotency_mismatch" });
}

/** Sends as given, and compares status and error. If it is refused, or only reads, no table may change. */
export async function exchange(
  world: World,
  asked: Ask,
  presented: Presented,
  expected: Expected,
): Promise<Answer> {
  if (expected.status < 400 && asked.method !== "GET")
    return compared(await send(world, asked, presented), asked, expected);
  let answer: Answer | null = null;
  const changed = await world.stage.guard.changes(async () => {
    answer = await send(world, asked, presented);
  });
  if (answer === null) return differ("no answer");
  const read = compared(answer, asked, expected);
  if (changed.length > 0)
    differ(`${asked.method} ${asked.path}, answered ${expected.status}, changes ${changed.join(", ")}`);
  return read;
}

function compared(answer: Answer, { method, path, body }: Ask, expected: Expected): Answer {
  const { status, type, ...said } = expected;
  if (answer.status !== status)
    differ(
      `${method} ${path} ${show(body)} is answered ${answer.status} ${answer.text}, the model says ${status} ${show(said)}`,
    );
  if (!answer.headers.get("x-request-id")) differ(`${method} ${path}: no X-Request-Id`);
  if (status >= 400)
    agree(
      membersOf(answer.body).error,
      { type: type ?? TYPES[status], message: (text: unknown) => typeof text === "string", ...said },
      `the error of ${method} ${path} ${show(body)}`,
    );
  if (status === 204 && answer.text !== "") differ(`${method} ${path}: a body with 204`);
  return answer;
}

/** Sends one request and reads its answer. */
async function send(world: World, asked: Ask, presented: Presented): Promise<Answer> {
  const { method, path, body } = asked;
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...presented, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const response = await world.stage.fetch(request);
  const text = await response.text();
  world.trace.push(
    `${method} ${path} ${show(body)} ${show(presented)} -> ${response.status} ${text.slice(0, 300)}`,
  );
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson && text !== "" ? JSON.parse(text) : null,
  };
}

/** Returns whether a key allows the request. If it has no scopes, it has all of them. */
export function mayAsk(key: Key, { project, scope, wide, allows }: Ask): boolean {
  if (key.revokedAt !== null) return false;
  if (key.scopes.length > 0 && !key.scopes.includes(scope)) return false;
  if (wide === true && key.project !== null) return false;
  if (project !== null && key.project !== null && key.project !== project) return false;
  return allows?.(key) ?? true;
}

function keyFor(chance: Chance, asked: Ask): Key {
  const [first, ...more] = asked.account.keys.filter((key) => mayAsk(key, asked));
  return first === undefined ? differ("the account has no key that may ask") : chance.pick([first, ...more]);
}

const PROJECT_HEADERS = ["X-Service-Product", "x-service-sender"] as const;

/** A key's headers. If it is account-wide, it names its project; a project's key may. */
function presentedBy(chance: Chance, key: Key, project: Project | null): Presented {
  const authorization = `Bearer ${key.secret}`;
  if (project === null || (key.project !== null && chance.happens(0.8))) return { authorization };
  return { authorization, [chance.pick(PROJECT_HEADERS)]: chance.pick([project.id, project.externalId]) };
}
