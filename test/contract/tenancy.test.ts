import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { bodyFor, endImports, type Made, MAKERS, makePath, missingFor, queryFor } from "../support/estate.ts";
import { fill, type Operation } from "../support/openapi-document.ts";
import {
  CREDENTIALS,
  type Credential,
  expectedStatuses,
  type Target,
  targetsOf,
} from "../support/tenancy.ts";
import { type Presented, type RawAnswer, startWorld, type Tenant, type World } from "../support/tenants.ts";

const START_MS = 180_000;
const MATRIX_MS = 180_000;
setDefaultTimeout(MATRIX_MS);

/** Resources of each tenant for the path of each operation, which no request may change. */
type Estate = Map<string, Made[]>;

let world: World;
let estates: Record<"home" | "sibling" | "stranger", Estate>;

beforeAll(async () => {
  world = await startWorld();
  estates = {
    home: await estateOf(world.home),
    sibling: await estateOf(world.sibling),
    stranger: await estateOf(world.stranger),
  };
}, START_MS);
afterAll(() => world.stop());

async function estateOf(tenant: Tenant): Promise<Estate> {
  const estate: Estate = new Map();
  for (const operation of world.operations) {
    if (missingFor(operation).length > 0) continue;
    estate.set(operation.key, await makePath(operation, world, tenant));
  }
  return estate;
}

/** One request of the matrix. */
interface Cell {
  operation: Operation;
  credential: Credential;
  target: Target | null;
  /** The segment that the target fills. The others belong to home. */
  segment: number;
}

function* cellsOf(operation: Operation): Generator<Cell> {
  for (const credential of CREDENTIALS) {
    if (operation.pathParams.length === 0) yield { operation, credential, target: null, segment: 0 };
    for (const segment of operation.pathParams.keys())
      for (const target of targetsOf(operation, segment)) yield { operation, credential, target, segment };
  }
}

const nameOf = ({ operation, credential, target, segment }: Cell) =>
  `${operation.key} with ${credential.name}, segment ${segment}: ${target?.name ?? "none"}`;

/** A name of the target: an alias counts like the id. */
function namesOf(made: Made | undefined): string[] {
  return made === undefined ? [] : [made.id, ...(made.aliases ?? [])];
}

/** The paths of a cell: one for each name of the target. */
async function pathsOf({ operation, target, segment }: Cell): Promise<string[]> {
  if (target === null) return [fill(operation, []) + queryFor(operation)];
  const kept = estates.home.get(operation.key) ?? [];
  const names = namesOf(kept[segment]).keys();
  // An account-wide key deletes it.
  const reached = operation.key === "DELETE /v1/senders/{}";
  const paths: string[] = [];
  for (const at of names) {
    const own = target.fresh ? await makePath(operation, world, world.home) : kept;
    const [mine, sibling, stranger] = [
      own,
      reached ? await makePath(operation, world, world.sibling) : estates.sibling.get(operation.key),
      estates.stranger.get(operation.key),
    ].map((made) => namesOf(made?.[segment])[at] ?? "");
    const values = own.map(({ id }) => id);
    values[segment] = target.value(mine ?? "", sibling ?? "", stranger ?? "");
    const path = fill(operation, values);
    paths.push(path + queryFor(operation, path));
  }
  return paths;
}

/** The answer without values that differ in each request. */
function comparable({ status, headers, text }: RawAnswer): string {
  const id = headers.get("x-request-id") ?? "";
  const own = new Set(["x-request-id", "date"]);
  const kept = [...headers].filter(([name]) => !own.has(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([status, kept, text.replaceAll(id, "<request>")]);
}

/**
 * Every GET that a tenant's keys can make of its resources, but not of the sibling's account, where home's
 * account-wide key has access.
 */
async function shownTo(tenant: Tenant, estate: Estate): Promise<Map<string, string>> {
  const shown = new Map<string, string>();
  for (const operation of world.operations) {
    if (operation.method !== "GET" || operation.level === "open") continue;
    // The installation's, which changes by itself.
    if (operation.path === "/v1/health") continue;
    if (operation.level === "account" && tenant.accountId === world.home.accountId) continue;
    const key = operation.level === "account" ? tenant.wide : tenant.key;
    const path = fill(
      operation,
      (estate.get(operation.key) ?? []).map(({ id }) => id),
    );
    const answer = await world.call("GET", `${path}${queryFor(operation)}`, { key });
    // The time of a key's last use, and that of a signature, change by reading.
    const text = answer.text
      .replace(/"lastUsedAt":("[^"]*"|null)/g, "")
      .replace(/"requestId":"[^"]*"/g, "")
      // The account-wide key of home may revoke keys of the sibling.
      .replace(/"apiKeys":\{"used":\d+/g, "")
      .replace(/DKIM-Signature:[^\n]*\n([ \t][^\n]*\n)*/g, "");
    shown.set(operation.key, `${answer.status} ${text}`);
  }
  return shown;
}

/** Names and ids that reveal a tenant's resources in an answer to another tenant. */
function marksOf(tenant: Tenant, estate: Estate): string[] {
  const ids = [...estate.values()].flat().flatMap(namesOf);
  return [...new Set([tenant.name, tenant.senderId, tenant.domainId, tenant.inboxId, ...ids])];
}

/** Operations on what the whole installation shares. A key without the right to them is refused before. */
const OF_NO_TENANT: ReadonlySet<string> = new Set(["POST /v1/lanes/{}/open"]);

/** Operations that show members to keys of their account. Those of a project get none: test/flow/mailbox.test.ts. */
const SHOWS_MEMBERS: ReadonlySet<string> = new Set(["GET /v1/mailbox"]);

describe("tenancy", () => {
  test("every operation of the document has the inputs for its requests", () => {
    expect(world.operations.flatMap(missingFor)).toEqual([]);
  });

  test("every operation, with every key and target, answers the status of the rules, and leaks nothing", async () => {
    const before = {
      sibling: await shownTo(world.sibling, estates.sibling),
      stranger: await shownTo(world.stranger, estates.stranger),
    };
    const marks = {
      sibling: marksOf(world.sibling, estates.sibling),
      stranger: marksOf(world.stranger, estates.stranger),
    };
    // Each of them must be visible to its owner, or the search for leaks could find nothing.
    for (const name of ["sibling", "stranger"] as const)
      expect(
        [...before[name].values()].filter((text) => text.includes(world[name].name)).length,
      ).toBeGreaterThan(5);
    const faults: string[] = [];
    let cells = 0;
    for (const operation of world.operations) {
      // Whoever holds such a link may use it: test/flow/notices.test.ts, forward-addresses.test.ts and topics.test.ts.
      if (/^\/[afj]\//.test(operation.path)) continue;
      if (missingFor(operation).length > 0 || OF_NO_TENANT.has(operation.key)) continue;
      const hidden = new Map<string, Set<string>>();
      for (const cell of cellsOf(operation)) {
        const { credential, target } = cell;
        const presented = await credential.present(world, operation);
        for (const path of await pathsOf(cell)) {
          cells++;
          if (operation.file !== null) await endImports(world, world.home);
          const body = bodyFor(operation, world, world.home, path);
          const answer = await world.call(operation.method, path, presented, body);
          const expected = expectedStatuses(operation, credential, target);
          if (!expected.includes(answer.status))
            faults.push(`${nameOf(cell)}: ${answer.status}, not ${expected}: ${answer.text.slice(0, 200)}`);
          // Whoever holds an unsubscribe link sees the topics of its project: test/flow/topics.test.ts.
          const isShared = operation.path.startsWith("/u/");
          const ofSibling = marks.sibling.filter(
            (mark) => !(SHOWS_MEMBERS.has(operation.key) && mark.startsWith("mem_")),
          );
          const others = [...marks.stranger, ...(credential.wide(operation) ? [] : ofSibling)];
          const foreign = isShared ? [] : others;
          for (const mark of foreign)
            if (answer.text.includes(mark)) faults.push(`${nameOf(cell)}: shows ${mark}`);
          if (!expected.includes(404) || target === null) continue;
          const alike = hidden.get(`${credential.name} ${cell.segment}`) ?? new Set();
          hidden.set(`${credential.name} ${cell.segment}`, alike.add(comparable(answer)));
        }
      }
      for (const [name, answers] of hidden)
        if (answers.size !== 1)
          faults.push(
            `${operation.key} with ${name} tells the foreign from the absent: ${[...answers].join(" or ")}`,
          );
    }
    process.stdout.write(`tenancy: ${cells} cells over ${world.operations.length} operations\n`);
    expect(faults).toEqual([]);
    expect(await shownTo(world.sibling, estates.sibling)).toEqual(before.sibling);
    expect(await shownTo(world.stranger, estates.stranger)).toEqual(before.stranger);
  });
});

/** The resource that a field names, by the field's name. */
const REFERENCES: Readonly<Record<string, keyof typeof MAKERS>> = {
  domainId: "/v1/domains",
  inboxId: "/v1/inboxes",
  inboxIds: "/v1/inboxes",
  emailId: "/v1/emails",
  messageId: "/v1/emails",
  inReplyTo: "/v1/emails",
  senderId: "/v1/senders",
  senderIds: "/v1/senders",
  routeIds: "/v1/routes",
  routeId: "/v1/routes",
  templateId: "/v1/templates",
  contactId: "/v1/contacts",
  topicId: "/v1/topics",
  threadId: "/v1/threads",
  assigneeId: "/v1/members",
  authorId: "/v1/members",
  segmentId: "/v1/segments",
};
/** Ids that the client chooses, and the place in a stream, which test/flow/live-stream.test.ts tries. */
const OWN_WORDS: ReadonlySet<string> = new Set(["externalId", "contentId", "lastEventId"]);

interface Reference {
  operation: Operation;
  name: string;
  place: "query" | "body";
}

function referencesOf(operation: Operation): Reference[] {
  const query = operation.query.map(({ name }): Reference => ({ operation, name, place: "query" }));
  const body = Object.keys(operation.body?.properties ?? {}).map(
    (name): Reference => ({ operation, name, place: "body" }),
  );
  return [...query, ...body].filter(
    ({ name }) => (/Ids?$/.test(name) || REFERENCES[name] !== undefined) && !OWN_WORDS.has(name),
  );
}

describe("an id in a body or a query", () => {
  test("every field that looks like one is listed with its resource", () => {
    const unknown = world.operations
      .flatMap(referencesOf)
      .filter(({ name }) => REFERENCES[name] === undefined)
      .map(({ operation, name }) => `${operation.key}: REFERENCES has no "${name}"`);
    expect(unknown).toEqual([]);
  });

  /** Sends the request with the id in its place. The id itself is blanked out before comparing. */
  async function ask({ operation, name, place }: Reference, presented: Presented, id: string) {
    const made = await makePath(operation, world, world.home);
    const path = fill(
      operation,
      made.map((each) => each.id),
    );
    const body = bodyFor(operation, world, world.home);
    const value = name === "inboxIds" ? [id] : id;
    const inBody = body instanceof Object ? { ...body, [name]: value } : { [name]: value };
    const answer =
      place === "query"
        ? await world.call(operation.method, `${path}?${name}=${id}`, presented, body)
        : await world.call(operation.method, path, presented, inBody);
    return { answer, seen: comparable(answer).replaceAll(id, "<id>") };
  }

  /** A member belongs to the account, so only one limited to other projects is foreign to a project of it. */
  async function limitedMember({ wide, senderId }: Tenant): Promise<string> {
    const body = { email: `${crypto.randomUUID()}@example.com`, role: "support", senderIds: [senderId] };
    const made = await world.call("POST", "/v1/members", { key: wide }, body);
    expect(made.status).toBe(201);
    return made.json.id;
  }

  /** Ids of a sibling, a stranger and of no resource, for a field. */
  async function foreignIds({ name }: Reference): Promise<string[]> {
    const make = MAKERS[REFERENCES[name] ?? ""];
    const ids: string[] = [];
    for (const tenant of [world.sibling, world.stranger])
      ids.push(
        name === "senderId"
          ? tenant.senderId
          : name === "assigneeId"
            ? await limitedMember(tenant)
            : ((await make?.({ world, tenant, above: [] }))?.id ?? ""),
      );
    return [...ids, `${ids[1]?.slice(0, -8)}00000000`];
  }

  test("an id of another project or account, in a body or a query, is answered like an unknown one and has no effect", async () => {
    const references = world.operations
      .filter((operation) => missingFor(operation).length === 0)
      .flatMap(referencesOf);
    expect(references.length).toBeGreaterThan(4);
    const foreign = new Map<Reference, string[]>();
    for (const reference of references) foreign.set(reference, await foreignIds(reference));
    const before = await shownTo(world.stranger, estates.stranger);
    const faults: string[] = [];
    for (const [reference, ids] of foreign) {
      const { operation, name, place } = reference;
      const label = `${operation.key}, ${place} ${name}`;
      const asked = [];
      for (const id of ids) asked.push(await ask(reference, { key: world.home.key }, id));
      const seen = [...new Set(asked.map((each) => each.seen))];
      if (seen.length !== 1) faults.push(`${label} tells the foreign from the absent: ${seen.join(" or ")}`);
      for (const { answer } of asked) {
        const empty = place === "query" && answer.json?.data?.length === 0;
        if (answer.status < 400 && !empty) faults.push(`${label} takes it: ${answer.status} ${answer.text}`);
      }
    }
    process.stdout.write(`tenancy: ${references.length} fields that name an id\n`);
    expect(faults).toEqual([]);
    expect(await shownTo(world.stranger, estates.stranger)).toEqual(before);
  });
});
