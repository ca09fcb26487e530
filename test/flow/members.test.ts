import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { UI_HEADER } from "../../src/http/access/own-page.ts";
import { newSignInLink } from "../../src/flows/account/sign-in.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { deleteMember } from "../../src/store/projects/members.ts";
import { interject } from "../support/interject.ts";
import { until } from "../support/poll.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { startService, type TestService } from "../support/service.ts";

const clock = shiftedClock();
let service: TestService;
/** An external and an internal id of a second project. */
let second: { id: string; externalId: string };

beforeAll(async () => {
  service = await startService({ ROLES: "api", DELIVERY: "mx", HTTP_PROXIES: "127.0.0.1" }, clock);
  second = (await wide("POST", "/v1/senders", { name: "Second" })).body;
});
afterAll(() => service.stop());

const wide = (method: string, path: string, body?: unknown) =>
  service.call(method, path, body, { key: service.accountKey });

let count = 0;
interface Person {
  id: string;
  email: string;
}
async function invited(role: string, senderIds: readonly string[] = []): Promise<Person> {
  const email = `person${++count}@example.com`;
  const { status, body } = await wide("POST", "/v1/members", { email, role, senderIds });
  expect([status, body.status]).toEqual([201, "invited"]);
  return body;
}

const origin = () => service.url;
/** A browser at its own address, because sign-ins are limited for each. */
const own = () => ({
  "x-forwarded-for": `192.0.2.${++count % 250}`,
  origin: origin(),
  [UI_HEADER]: "1",
  "content-type": "application/json",
});
const signIn = (body: unknown, headers: Record<string, string> = own()) =>
  fetch(`${service.url}/ui/session`, { method: "POST", headers, body: JSON.stringify(body) });

async function linkOf({ id }: Person): Promise<string> {
  const token = await newSignInLink({ db: service.app.db, clock }, id);
  if (token === null) throw new Error("too many links");
  return token;
}

/** Signs a member in. Returns the cookie. */
async function signedIn(person: Person): Promise<string> {
  const answer = await signIn({ token: await linkOf(person) });
  expect(answer.status).toBe(204);
  return (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

async function ask(cookie: string, method: string, path: string, body?: unknown, project?: string) {
  const headers = { ...own(), cookie, ...(project === undefined ? {} : { "X-Service-Product": project }) };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const answer = await fetch(`${service.url}${path}`, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, json: text === "" ? null : JSON.parse(text) };
}
const statusOf = async (cookie: string, path = "/v1/me") => (await ask(cookie, "GET", path)).status;

describe("a link to sign in", () => {
  test("a link opens one session, whose member is active from then on", async () => {
    const person = await invited("developer");
    const token = await linkOf(person);
    const first = await signIn({ token });
    expect([first.status, first.headers.get("set-cookie")]).toEqual([
      204,
      expect.stringMatching(/^postrider=.*Max-Age=604800; HttpOnly; SameSite=Strict$/),
    ]);
    const second = await signIn({ token });
    expect([second.status, second.headers.get("set-cookie")]).toEqual([401, null]);
    expect((await wide("GET", `/v1/members/${person.id}`)).body.status).toBe("active");
  });

  test("a link that is older than 15 minutes opens no session", async () => {
    const token = await linkOf(await invited("viewer"));
    clock.shift(15 * MINUTE_MS + 1);
    expect((await signIn({ token })).status).toBe(401);
  });

  test.each(["removed", "disabled"])("the link of a member who was %s opens no session", async (how) => {
    const person = await invited("viewer");
    const token = await linkOf(person);
    if (how === "removed") await wide("DELETE", `/v1/members/${person.id}`);
    else await wide("PATCH", `/v1/members/${person.id}`, { status: "disabled" });
    expect((await signIn({ token })).status).toBe(401);
  });

  test("another page cannot sign a browser in with a link", async () => {
    const token = await linkOf(await invited("viewer"));
    for (const headers of [
      { ...own(), origin: "https://evil.example" },
      { "content-type": "application/json", origin: origin() },
    ])
      expect((await signIn({ token }, headers)).status).toBe(403);
    expect((await signIn({ token })).status).toBe(204);
  });

  test("two links of a member work at a time, and an unknown address gets the same answer", async () => {
    const person = await invited("viewer");
    await linkOf(person);
    expect(await newSignInLink({ db: service.app.db, clock }, person.id)).toBeNull();
    for (const email of [person.email, "nobody@example.com", "not an address"])
      expect((await signIn({ email })).status).toBe(204);
    clock.shift(15 * MINUTE_MS + 1);
    expect(await newSignInLink({ db: service.app.db, clock }, person.id)).not.toBeNull();
  });
});

describe("the message with a link", () => {
  test("the message with a link leaves again after one has bounced, because no key could lift the suppression", async () => {
    const person = await invited("viewer");
    const { db } = service.app;
    const mails = () =>
      db.all<{ sender_id: string; status: string }>(
        "SELECT m.sender_id, r.status FROM recipients r JOIN messages m ON m.id = r.message_id WHERE r.email = ?",
        [person.email],
      );
    const [invitation] = await mails();
    await db.write([
      {
        sql: "INSERT INTO suppressions (id, sender_id, email, reason, created_at) VALUES (?, ?, ?, 'bounce', ?)",
        args: [newId("sup", clock.now()), invitation?.sender_id ?? "", person.email, clock.now()],
      },
    ]);
    expect((await signIn({ email: person.email })).status).toBe(204);
    await until(async () => (await mails()).length === 2);
    expect((await mails()).map(({ status }) => status)).not.toContain("rejected");
  });

  test("the message with a link leaves from the onboarding domain, and no key can find it", async () => {
    const person = await invited("owner");
    const message = await service.app.db.first<{ id: string; sender_id: string }>(
      "SELECT m.id, m.sender_id FROM recipients r JOIN messages m ON m.id = r.message_id WHERE r.email = ?",
      [person.email],
    );
    if (message === null) throw new Error("no message");
    for (const name of [".postrider", message.sender_id])
      for (const path of ["/v1/emails", `/v1/emails/${message.id}`, `/v1/emails/${message.id}/raw`]) {
        const { status } = await service.call("GET", path, undefined, {
          key: service.accountKey,
          headers: { "X-Service-Product": name },
        });
        expect([path, status]).toEqual([path, 404]);
      }
    expect((await wide("GET", `/v1/senders/${message.sender_id}`)).status).toBe(404);
    const key = { name: "spy", senderId: message.sender_id };
    expect((await wide("POST", "/v1/api-keys", key)).status).toBe(404);
    const limited = { email: "spy@example.com", role: "support", senderIds: [message.sender_id] };
    expect((await wide("POST", "/v1/members", limited)).status).toBe(422);
    const { body } = await wide("GET", "/v1/senders?limit=100");
    expect(body.data.map(({ id }: { id: string }) => id)).not.toContain(message.sender_id);
    for (const project of ["default", second.id]) {
      const { body: page } = await service.call("GET", "/v1/emails?limit=100", undefined, {
        key: service.accountKey,
        headers: { "X-Service-Product": project },
      });
      expect(page.data).toEqual([]);
    }
  });
});

describe("a member's session", () => {
  test.each([
    ["owner", 200, 201, 201],
    ["developer", 200, 201, 403],
    ["support", 200, 403, 403],
    ["viewer", 200, 403, 403],
  ] as const)("a session of the role %s has its rights", async (role, reads, makesKey, makesProject) => {
    const cookie = await signedIn(await invited(role));
    const project = "default";
    expect((await ask(cookie, "GET", "/v1/emails", undefined, project)).status).toBe(reads);
    expect((await ask(cookie, "GET", "/v1/senders")).status).toBe(200);
    const scopes = ["emails:read"];
    expect((await ask(cookie, "POST", "/v1/api-keys", { name: "k", scopes })).status).toBe(makesKey);
    const sender = { name: `of ${role}` };
    expect((await ask(cookie, "POST", "/v1/senders", sender)).status).toBe(makesProject);
    const invitation = { email: `by-${role}@example.com`, role: "viewer" };
    expect((await ask(cookie, "POST", "/v1/members", invitation)).status).toBe(makesProject);
    expect((await ask(cookie, "GET", "/v1/me")).json.member).toMatchObject({ role });
  });

  test("a developer cannot make a key with every scope", async () => {
    const cookie = await signedIn(await invited("developer"));
    expect((await ask(cookie, "POST", "/v1/api-keys", { name: "all" })).status).toBe(403);
  });

  test("a change by a member names the member in the audit trail, and a key that it makes names it too", async () => {
    const person = await invited("developer");
    const cookie = await signedIn(person);
    const { json } = await ask(cookie, "POST", "/v1/api-keys", { name: "made", scopes: ["emails:read"] });
    const { body } = await wide("GET", `/v1/audit-log?target=${json.id}`);
    expect(body.data[0].actor).toEqual({ type: "member", id: person.id, name: person.email });
    const keyNow = async () =>
      (await wide("GET", "/v1/api-keys")).body.data.find(({ id }: { id: string }) => id === json.id);
    expect(json.createdBy).toEqual({ type: "member", id: person.id, name: person.email });
    expect((await keyNow()).createdBy).toEqual(json.createdBy);
    const signIns = (await wide("GET", `/v1/audit-log?actor=${person.id}&action=session.create`)).body.data;
    expect(signIns).toHaveLength(1);
    await wide("DELETE", `/v1/members/${person.id}`);
    expect((await keyNow()).createdBy).toEqual({ type: "member", id: person.id, name: null });
  });

  test.each([
    ["removal", (id: string) => wide("DELETE", `/v1/members/${id}`)],
    ["disabling", (id: string) => wide("PATCH", `/v1/members/${id}`, { status: "disabled" })],
    ["the end of all its sessions", (id: string) => wide("DELETE", `/v1/members/${id}/sessions`)],
    [
      "the end of this session",
      async (id: string) => {
        const { body } = await wide("GET", `/v1/members/${id}/sessions`);
        return wide("DELETE", `/v1/members/${id}/sessions/${body.data[0].id}`);
      },
    ],
  ])("a session ends with the next request after %s", async (_what, end) => {
    const person = await invited("developer");
    const cookie = await signedIn(person);
    expect(await statusOf(cookie)).toBe(200);
    expect((await end(person.id)).status).toBeLessThan(300);
    expect(await statusOf(cookie)).toBe(401);
  });

  test("a member who was disabled and enabled again has to sign in again", async () => {
    const person = await invited("developer");
    const cookie = await signedIn(person);
    await wide("PATCH", `/v1/members/${person.id}`, { status: "disabled" });
    await wide("PATCH", `/v1/members/${person.id}`, { status: "active" });
    expect(await statusOf(cookie)).toBe(401);
    expect(await statusOf(await signedIn(person))).toBe(200);
  });

  test("signing out ends the session for copies of its cookie, too", async () => {
    const cookie = await signedIn(await invited("viewer"));
    expect((await ask(cookie, "DELETE", "/ui/session")).status).toBe(204);
    expect(await statusOf(cookie)).toBe(401);
  });

  test("another role holds from the next request on", async () => {
    const person = await invited("developer");
    const cookie = await signedIn(person);
    await wide("PATCH", `/v1/members/${person.id}`, { role: "viewer" });
    const key = { name: "late", scopes: ["emails:read"] };
    expect((await ask(cookie, "POST", "/v1/api-keys", key)).status).toBe(403);
  });

  test("a session ends after seven days without use, and slides with use", async () => {
    const person = await invited("viewer");
    let cookie = await signedIn(person);
    for (let day = 0; day < 8; day += 4) {
      clock.shift(4 * DAY_MS);
      const { status, headers } = await ask(cookie, "GET", "/v1/me");
      expect(status).toBe(200);
      cookie = headers.get("set-cookie")?.split(";")[0] ?? cookie;
      const prolonged = clock.now() + 7 * DAY_MS - HOUR_MS;
      await until(async () => {
        const { body } = await wide("GET", `/v1/members/${person.id}/sessions`);
        return Date.parse(body.data[0].expiresAt) > prolonged;
      });
    }
    clock.shift(7 * DAY_MS + 1);
    expect(await statusOf(cookie)).toBe(401);
  });
});

describe("a member who is limited to projects", () => {
  test("a limited member reaches the named projects and no others", async () => {
    const third = (await wide("POST", "/v1/senders", { name: "Third" })).body;
    const cookie = await signedIn(await invited("developer", [second.id, third.id]));
    const me = async (project?: string) => (await ask(cookie, "GET", "/v1/me", undefined, project)).json;
    expect((await me()).project.id).toBe(second.id);
    for (const name of [third.id, third.externalId]) expect((await me(name)).project.id).toBe(third.id);
    const limits = (await me()).member.projects;
    expect(limits.map(({ id }: { id: string }) => id)).toEqual([second.id, third.id]);
    for (const name of ["default", ".postrider", "none"])
      expect((await ask(cookie, "GET", "/v1/emails", undefined, name)).status).toBe(403);
    expect((await ask(cookie, "GET", "/v1/senders")).status).toBe(403);
    const wanted = { name: "k", scopes: ["emails:read"] };
    expect((await ask(cookie, "POST", "/v1/api-keys", wanted)).status).toBe(403);
    const mine = { ...wanted, senderId: second.id };
    expect((await ask(cookie, "POST", "/v1/api-keys", mine)).status).toBe(201);
  });

  test("an owner cannot be limited to projects", async () => {
    const body = { email: "limited@example.com", role: "owner", senderIds: [second.id] };
    expect((await wide("POST", "/v1/members", body)).status).toBe(422);
    const person = await invited("viewer", [second.id]);
    expect((await wide("PATCH", `/v1/members/${person.id}`, { role: "owner" })).status).toBe(422);
  });
});

describe("the last active owner", () => {
  test("the last active owner can be neither removed, demoted nor disabled", async () => {
    const { data } = (await wide("GET", "/v1/members?limit=100")).body;
    for (const { id, role } of data)
      if (role === "owner") await wide("PATCH", `/v1/members/${id}`, { role: "viewer" });
    const left = (await wide("GET", "/v1/members?limit=100")).body.data;
    for (const { id, role } of left) if (role === "owner") await wide("DELETE", `/v1/members/${id}`);
    const last = left.find(
      ({ role, status }: { role: string; status: string }) => role === "owner" && status === "active",
    );
    expect(last).toBeDefined();
    expect((await wide("DELETE", `/v1/members/${last.id}`)).status).toBe(409);
    expect((await wide("PATCH", `/v1/members/${last.id}`, { role: "viewer" })).status).toBe(409);
    expect((await wide("PATCH", `/v1/members/${last.id}`, { status: "disabled" })).status).toBe(409);
    const other = await invited("owner");
    expect((await wide("DELETE", `/v1/members/${last.id}`)).status).toBe(409);
    await signedIn(other);
    expect((await wide("DELETE", `/v1/members/${last.id}`)).status).toBe(204);
  });

  /** Makes two owners who have signed in, and the only ones. */
  async function twoOwners() {
    const people = [await invited("owner"), await invited("owner")];
    const account = (await service.app.db.first<{ id: string }>("SELECT id FROM accounts"))?.id ?? "";
    const owners = [];
    for (const { id } of people) owners.push({ id, account, cookie: await signedIn({ id, email: "" }) });
    for (const { id, role } of (await wide("GET", "/v1/members?limit=100")).body.data)
      if (role === "owner" && !people.some((one) => one.id === id)) await wide("DELETE", `/v1/members/${id}`);
    return owners as [(typeof owners)[0], (typeof owners)[0]];
  }

  test.each([
    ["remove", "DELETE", undefined],
    ["demote", "PATCH", { role: "viewer" }],
    ["disable", "PATCH", { status: "disabled" }],
  ])(
    "of two owners who %s each other at the same moment, one stays an active owner",
    async (_what, method, body) => {
      const [ana, eve] = await twoOwners();
      const path = ({ id }: { id: string }) => `/v1/members/${id}`;
      const answers = await Promise.all([
        ask(ana.cookie, method, path(eve), body),
        ask(eve.cookie, method, path(ana), body),
      ]);
      expect(answers.filter(({ status }) => status < 300)).toHaveLength(1);
      const { data } = (await wide("GET", "/v1/members?limit=100")).body;
      const left = data.filter(
        (one: { role: string; status: string }) => one.role === "owner" && one.status === "active",
      );
      expect(left.map(({ id }: Person) => id)).toEqual([answers[0].status < 300 ? ana.id : eve.id]);
    },
  );

  test("an owner who was invited and disabled and enabled again, and never signed in, does not count", async () => {
    const [ana, eve] = await twoOwners();
    await wide("DELETE", `/v1/members/${eve.id}`);
    const other = await invited("owner");
    for (const status of ["disabled", "active"])
      expect((await wide("PATCH", `/v1/members/${other.id}`, { status })).status).toBe(200);
    expect((await wide("GET", `/v1/members/${other.id}`)).body.status).toBe("invited");
    expect((await ask(ana.cookie, "DELETE", `/v1/members/${ana.id}`)).status).toBe(409);
    expect((await ask(ana.cookie, "DELETE", `/v1/members/${other.id}`)).status).toBe(204);
    expect(await statusOf(ana.cookie)).toBe(200);
  });

  test.each([
    [
      "invites no one",
      "POST",
      "/v1/members",
      { email: "friend@example.com", role: "owner" },
      /INSERT INTO members/,
    ],
    ["changes no one", "PATCH", "", { role: "owner" }, /UPDATE members SET role/],
    ["removes no one", "DELETE", "", undefined, /DELETE FROM members/],
  ] as const)("an owner who is removed in the meantime %s", async (_what, method, path, body, sql) => {
    const [ana, eve] = await twoOwners();
    const third = await invited("viewer");
    const { db } = service.app;
    const removed = interject(db, { sql, when: "before" }, () => deleteMember(db, eve.account, eve.id));
    const { status } = await ask(eve.cookie, method, path === "" ? `/v1/members/${third.id}` : path, body);
    expect([await removed, status]).toEqual([true, 401]);
    expect((await wide("GET", `/v1/members/${third.id}`)).body.role).toBe("viewer");
    expect(await statusOf(ana.cookie)).toBe(200);
  });

  test("an owner who is not the last may leave, and may become another role", async () => {
    const [ana, eve] = await twoOwners();
    expect((await ask(eve.cookie, "DELETE", `/v1/members/${eve.id}`)).status).toBe(204);
    await signedIn(await invited("owner"));
    expect((await ask(ana.cookie, "PATCH", `/v1/members/${ana.id}`, { role: "viewer" })).status).toBe(200);
    expect((await ask(ana.cookie, "GET", "/v1/me")).json.member.role).toBe("viewer");
  });

  test("an address has one member", async () => {
    const { email } = await invited("viewer");
    const again = await wide("POST", "/v1/members", { email: email.toUpperCase(), role: "owner" });
    expect([again.status, again.body.error.code]).toEqual([409, "duplicate"]);
  });
});

test("in capture mode, the first project shows the message with the link", async () => {
  await service.restart({ DELIVERY: "capture" });
  const { email } = await invited("viewer");
  expect((await signIn({ email })).status).toBe(204);
  const found = async () => {
    const { body } = await service.call("GET", `/v1/emails?to=${email}`);
    return body.data.map(({ subject }: { subject: string }) => subject);
  };
  await until(async () => (await found()).length === 2);
  expect(await found()).toEqual(["Your invitation to Postrider", "Your invitation to Postrider"]);
});
