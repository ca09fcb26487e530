import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import PostalMime from "postal-mime";
import type { NoticeKind } from "../../src/core/notices/kinds.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import { FAILING_AFTER_MS } from "../../src/flows/notices/facts.ts";
import { LOOK_PAUSE_MS } from "../../src/flows/notices/watch.ts";
import { WINDOW_DAYS } from "../../src/store/projects/reputation.ts";
import { publish, type ShownRecord } from "../support/dns.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { OWNER, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { turnUntil, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

const clock = shiftedClock();
let service: TestService;
let sink: HttpsSink;
/** The relay of the service. It knows no address that begins with `none`. */
let relay: TestMx;
const space = { free: 50e9, total: 100e9 };

beforeAll(async () => {
  sink = startSink();
  relay = startMx({
    answers: { RCPT: (to) => (to.includes("<none") ? "550 5.1.1 No such user" : "250 ok") },
  });
  const plans = { PLAN_PRO: "1000/9000", PLAN_UNLIMITED: "1000/9000", QUOTA_TEMPLATES: "2,1000,1000" };
  const delivery = { DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` };
  service = await startService({ ...plans, ...delivery }, clock, { disk: () => space });
});
afterAll(async () => {
  await service.stop();
  await sink.stop();
  relay.stop();
});

const wide = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  service.call(method, path, body, {
    key: service.accountKey,
    ...(headers === undefined ? {} : { headers }),
  });
const run = (sql: string, ...args: (string | number | null)[]) => service.app.db.write([{ sql, args }]);

interface Shown {
  id: string;
  kind: NoticeKind;
  subject: string;
  message: string;
  senderId: string | null;
  endedAt: string | null;
}
async function notices(kind: NoticeKind, key = service.accountKey): Promise<Shown[]> {
  const { body } = await service.call("GET", "/v1/notices?limit=100", undefined, { key });
  return body.data.filter((notice: Shown) => notice.kind === kind);
}

/** Lets the chore look at the facts. */
async function look(isSo: () => Promise<boolean>): Promise<void> {
  clock.shift(LOOK_PAUSE_MS);
  await turnUntil(clock, isSo);
}
const isOpen = (kind: NoticeKind) => async () =>
  (await notices(kind)).some(({ endedAt }) => endedAt === null);
const isOver = (kind: NoticeKind) => async () =>
  (await notices(kind)).every(({ endedAt }) => endedAt !== null);

interface Mail {
  id: string;
  sender: string;
  email: string;
  subject: string;
}
const mails = (words: string) =>
  service.app.db.all<Mail>(
    `SELECT m.id, m.sender_id AS sender, r.email, m.subject FROM messages m JOIN recipients r ON r.message_id = m.id
      WHERE m.from_email LIKE 'postrider@%' AND m.subject LIKE ? ORDER BY m.id`,
    [`%${words}%`],
  );
/** Returns the text part of each message that has left with such a subject. */
async function textsOf(words: string): Promise<string[]> {
  const left = await Promise.all(relay.messages.items.map(({ data }) => PostalMime.parse(data)));
  return left.flatMap(({ subject, text }) => (subject?.includes(words) === true ? [text ?? ""] : []));
}

async function newProject(fields: Record<string, unknown> = {}): Promise<{ id: string; externalId: string }> {
  const { status, body } = await wide("POST", "/v1/senders", { name: "P", ...fields });
  expect(status).toBe(201);
  return body;
}

/** For each kind, what makes its fact true and untrue, and the words of its subject. */
interface Case {
  kind: NoticeKind;
  begin: () => Promise<string>;
  end: () => Promise<unknown>;
}

let project = { id: "", externalId: "" };
const made = async (name: string) => {
  project = await newProject({ externalId: name });
  return name;
};
let webhookId = "";
/** Makes a webhook whose endpoint answers so, pushes to it, and waits until the webhook shows that. */
async function webhookOf(status: number, shows: "failingSince" | "disabledReason"): Promise<string> {
  sink.answer(status);
  const body = { url: `${sink.url}/secret-path`, eventTypes: ["*"] };
  webhookId = (await service.call("POST", "/v1/webhooks", body)).body.id;
  await service.call("POST", `/v1/webhooks/${webhookId}/test`);
  const shown = async () => (await service.call("GET", `/v1/webhooks/${webhookId}`)).body[shows];
  await turnUntil(clock, async () => (await shown()) !== null);
  if (shows === "failingSince") clock.shift(FAILING_AFTER_MS);
  return new URL(sink.url).host;
}
const endWebhook = () => service.call("DELETE", `/v1/webhooks/${webhookId}`);

let dkim: ShownRecord[] = [];

const CASES: Case[] = [
  {
    kind: "domain_failing",
    begin: async () => {
      const id = await verifiedDomain(service, "failing.test");
      const { records } = (await service.call("GET", `/v1/domains/${id}`)).body;
      dkim = records.filter(({ purpose }: { purpose: string }) => purpose === "dkim");
      expect(dkim).toHaveLength(1);
      for (const { name } of dkim) service.dns.remove(name);
      clock.shift(DAY_MS);
      return "failing.test";
    },
    end: async () => {
      publish(service.dns, dkim);
      clock.shift(HOUR_MS);
    },
  },
  {
    kind: "project_suspended",
    begin: async () => {
      const name = await made("suspended-one");
      await wide("PATCH", `/v1/senders/${project.id}`, { suspendedAt: new Date(clock.now()).toISOString() });
      return name;
    },
    end: () => wide("PATCH", `/v1/senders/${project.id}`, { suspendedAt: null }),
  },
  {
    kind: "project_near_suspension",
    begin: async () => {
      const name = await made("near-one");
      const { secret } = (await wide("POST", "/v1/api-keys", { name, senderId: project.id })).body;
      await verifiedDomain(service, "near.test", secret);
      const body = { from: "news@near.test", subject: "s", text: "t" };
      const send = async (to: string[]) =>
        expect((await service.call("POST", "/v1/emails", { ...body, to }, { key: secret })).status).toBe(202);
      for (const half of ["a", "b"])
        await send(Array.from({ length: 48 }, (_, at) => `${half}${at}@one.test`));
      await send(["none1@one.test", "none2@one.test", "none3@one.test", "none4@one.test"]);
      return name;
    },
    // The days of the bounces count no more.
    end: async () => clock.shift(WINDOW_DAYS * DAY_MS),
  },
  {
    kind: "quota_near",
    begin: async () => {
      const name = await made("quota-one");
      await run("UPDATE senders SET plan = 'free' WHERE id = ?", project.id);
      for (const slug of ["a", "b"])
        await wide(
          "POST",
          "/v1/templates",
          { name: slug, slug, subject: "s", text: "t" },
          { "X-Service-Product": name },
        );
      return name;
    },
    end: () => run("UPDATE senders SET plan = 'unlimited' WHERE id = ?", project.id),
  },
  {
    kind: "volume_near",
    begin: async () => {
      const name = await made("volume-one");
      await wide("PATCH", `/v1/senders/${project.id}`, { dailyQuota: 10 });
      const mail = { from: "hello@onboarding.mail.test", to: OWNER, subject: "s", text: "t" };
      for (let count = 0; count < 8; count++)
        expect((await wide("POST", "/v1/emails", mail, { "X-Service-Product": name })).status).toBe(202);
      return name;
    },
    end: () => wide("PATCH", `/v1/senders/${project.id}`, { dailyQuota: null }),
  },
  { kind: "webhook_failing", begin: () => webhookOf(500, "failingSince"), end: endWebhook },
  {
    kind: "webhook_disabled",
    begin: () => webhookOf(410, "disabledReason"),
    end: () => {
      sink.answer(200);
      return service.call("PATCH", `/v1/webhooks/${webhookId}`, { enabled: true });
    },
  },
  {
    kind: "disk_low",
    begin: async () => {
      space.free = 1e9;
      return "disk";
    },
    end: async () => {
      space.free = 50e9;
    },
  },
  {
    kind: "migration_failed",
    begin: async () => {
      const left = { version: "9.9.9", error: "no room", step: 999 };
      writeFileSync(join(service.folder, "migration-failed.json"), JSON.stringify(left));
      return "9.9.9";
    },
    end: async () => rmSync(join(service.folder, "migration-failed.json")),
  },
];

describe("a fact that needs people", () => {
  test.each(CASES.map((one) => [one.kind, one] as const))(
    "%s is in the list and mailed once while it is true, and ends when it is over",
    async (kind, { begin, end }) => {
      const subject = await begin();
      await look(isOpen(kind));
      const [notice] = await notices(kind);
      expect(notice?.subject).toBe(subject);
      const words = kind.replaceAll("_", " ").slice(1);
      await turnUntil(clock, async () => (await mails(`${words}: ${subject}`)).length > 0);
      await end();
      await look(isOver(kind));
      // Once more on the same day: it is in the list again, and not mailed.
      if (kind === "webhook_failing" || kind === "webhook_disabled") return;
      expect(await mails(`${words}: ${subject}`)).toHaveLength(1);
    },
  );

  test("a fact that is over and true again on the same day is mailed the next day", async () => {
    clock.shift(DAY_MS);
    const since = (await mails("low: disk")).length;
    const count = async () => (await mails("low: disk")).length - since;
    for (const free of [1e9, 50e9, 1e9]) {
      space.free = free;
      await look(free === 1e9 ? isOpen("disk_low") : isOver("disk_low"));
      if (free === 1e9) await turnUntil(clock, async () => (await count()) > 0);
    }
    expect(await count()).toBe(1);
    clock.shift(DAY_MS);
    await turnUntil(clock, async () => (await count()) === 2);
    space.free = 50e9;
    await look(isOver("disk_low"));
  });
});

/** Raises a notice by a fact that each test may use, and waits until it was sent. */
async function raiseMigration(version: string): Promise<void> {
  const left = { version, error: "no room", step: 999 };
  writeFileSync(join(service.folder, "migration-failed.json"), JSON.stringify(left));
  clock.shift(LOOK_PAUSE_MS);
  await turnUntil(clock, async () => {
    const sql = "SELECT 1 FROM notices WHERE subject_id = ? AND mailed_at IS NOT NULL";
    return (await service.app.db.first(sql, [version])) !== null;
  });
}

describe("who gets notices", () => {
  test("a suppressed or unsubscribed address gets no mail, and the others do", async () => {
    await wide("PATCH", "/v1/account", { notices: { to: [OWNER, "no@one.test", "un@one.test"] } });
    await service.call("POST", "/v1/suppressions", { email: "no@one.test" });
    await service.call("POST", "/v1/contacts", { email: "un@one.test", subscribed: false });
    await raiseMigration("1.0.1");
    expect((await mails("1.0.1")).map(({ email }) => email)).toEqual([OWNER]);
  });

  test("a kind that is off is in the list, and neither mailed nor mailed later", async () => {
    await wide("PATCH", "/v1/account", { notices: { off: ["migration_failed"] } });
    await raiseMigration("1.0.2");
    await wide("PATCH", "/v1/account", { notices: { off: [] } });
    await raiseMigration("1.0.3");
    expect(await mails("1.0.2")).toEqual([]);
    expect(await mails("1.0.3")).toHaveLength(1);
    expect((await notices("migration_failed")).map(({ subject }) => subject)).toContain("1.0.2");
  });

  test("a notice leaves although every project is suspended", async () => {
    const { data } = (await wide("GET", "/v1/senders?limit=100")).body;
    const suspend = async (suspendedAt: string | null) => {
      for (const { id } of data) await wide("PATCH", `/v1/senders/${id}`, { suspendedAt });
    };
    await suspend(new Date(clock.now()).toISOString());
    await raiseMigration("1.0.4");
    // It comes with the notices of the suspensions.
    await turnUntil(clock, async () => (await statuses("notices from Postrider")).includes("sent"));
    await suspend(null);
  });

  test("a webhook gets a notice, signed with the secret that was shown once, and no event of a message", async () => {
    const bodies: { type: string; data: { notice: Shown } }[] = [];
    sink.answer(async ({ headers, body }) => {
      const signature = headers.get("service-signature") ?? "";
      const [time = "", mac] = signature.split(",").map((part) => part.split("=")[1]);
      if (mac === new Bun.CryptoHasher("sha256", secret).update(`${time}.${body}`).digest("hex"))
        bodies.push(JSON.parse(body));
      return new Response("ok");
    });
    const url = `${sink.url}/notices`;
    const set = await wide("PATCH", "/v1/account", { notices: { webhook: url } });
    const secret: string = set.body.notices.webhookSecret;
    expect((await wide("GET", "/v1/account")).body.notices).toEqual({
      to: [OWNER, "no@one.test", "un@one.test"],
      webhook: url,
      off: [],
    });
    await raiseMigration("1.0.5");
    await turnUntil(clock, async () => bodies.some(({ data }) => data.notice.subject === "1.0.5"));
    expect(new Set(bodies.map(({ type }) => type))).toEqual(new Set(["notice"]));
    await wide("PATCH", "/v1/account", { notices: { webhook: null, to: null } });
    expect((await wide("GET", "/v1/account")).body.notices).toMatchObject({ to: [OWNER], webhook: null });
  });

  test("a webhook for notices that answers 410 is disabled, which people are told by mail, and enabled when it is given again", async () => {
    const pushed: string[] = [];
    let status = 410;
    sink.answer(({ path, body }) => {
      if (path !== "/gone") return new Response("");
      pushed.push(JSON.parse(body).data.notice.kind);
      return new Response("", { status });
    });
    const url = `${sink.url}/gone`;
    await wide("PATCH", "/v1/account", { notices: { webhook: url } });
    await raiseMigration("1.0.6");
    await look(isOpen("webhook_disabled"));
    const said = `The webhook for notices at ${new URL(url).host} was disabled: the endpoint answered 410 Gone. It gets none.`;
    const [notice] = await notices("webhook_disabled");
    expect([notice?.message, notice?.senderId]).toEqual([said, null]);
    await turnUntil(clock, async () => {
      const texts = await textsOf("ebhook disabled");
      return texts.some((text) => text.includes(said) && text.includes("/settings?view=notices"));
    });
    status = 200;
    await wide("PATCH", "/v1/account", { notices: { webhook: url } });
    await look(isOver("webhook_disabled"));
    const before = pushed.length;
    await raiseMigration("1.0.7");
    await turnUntil(clock, async () => pushed.length > before);
    expect(pushed).not.toContain("webhook_disabled");
    await wide("PATCH", "/v1/account", { notices: { webhook: null } });
  });

  test("a key of a project sees the notices of its project alone, and marks no other as seen", async () => {
    const own = await service.call("GET", "/v1/notices?limit=100");
    const { id } = (await service.call("GET", "/v1/me")).body.project;
    expect(own.body.data.length).toBeGreaterThan(0);
    expect(new Set(own.body.data.map(({ senderId }: Shown) => senderId))).toEqual(new Set([id]));
    // Its link opens that project, whichever one the reader has chosen.
    for (const { fix } of own.body.data) expect(fix.path).toEndWith(`?project=${id}`);
    const [foreign] = await notices("migration_failed");
    expect((await service.call("PATCH", `/v1/notices/${foreign?.id}`, { seen: true })).status).toBe(404);
    const seen = await wide("PATCH", `/v1/notices/${foreign?.id}`, { seen: true });
    expect([seen.status, seen.body.seenAt]).toEqual([200, expect.any(String)]);
    const unseen = (await wide("GET", "/v1/notices?seen=false&limit=100")).body.data;
    expect(unseen.map((notice: Shown) => notice.id)).not.toContain(foreign?.id);
  });
});

describe("the filters of the list", () => {
  const ids = async (query: string) =>
    (await wide("GET", `/v1/notices?limit=100&${query}`)).body.data.map(({ id }: Shown) => id);

  test("a notice that is over needs no look, and one of what happens once does", async () => {
    clock.shift(DAY_MS);
    space.free = 1e9;
    await look(isOpen("disk_low"));
    const { id } = (await notices("disk_low")).find(({ endedAt }) => endedAt === null) as Shown;
    expect([await ids("seen=false"), await ids("ended=false")]).toEqual([
      expect.arrayContaining([id]),
      expect.arrayContaining([id]),
    ]);
    space.free = 50e9;
    await look(isOver("disk_low"));
    expect([(await ids("seen=false")).includes(id), (await ids("ended=true")).includes(id)]).toEqual([
      false,
      true,
    ]);
    const { body } = await service.call("POST", "/v1/erasures", { email: "seen@one.test" });
    await turnUntil(clock, async () => (await mails(`done: ${body.id}`)).length === 1);
    const once = (await notices("erasure_done")).find(({ subject }) => subject === body.id)?.id;
    expect(await ids("seen=false")).toContain(once);
    await wide("PATCH", `/v1/notices/${once}`, { seen: true });
    expect(await ids("seen=false")).not.toContain(once);
  });
});

const statuses = async (words: string) =>
  (
    await service.app.db.all<{ status: string }>(
      "SELECT r.status FROM messages m JOIN recipients r ON r.message_id = m.id WHERE m.subject LIKE ?",
      [`%${words}%`],
    )
  ).map(({ status }) => status);

describe("the link of an approval", () => {
  /** Sends a message that waits. Returns its id and the path of the link. */
  async function waiting(): Promise<{ id: string; link: string }> {
    // On the same day, each message is another subject.
    const { id: senderId } = (await service.call("GET", "/v1/me")).body.project;
    const wanted = { name: "agent", senderId, approval: true };
    const { secret } = (await service.call("POST", "/v1/api-keys", wanted)).body;
    const mail = {
      from: "postrider@onboarding.mail.test",
      to: OWNER,
      subject: "Dear <b>you</b>",
      html: '<p>Pay now</p><img src="https://evil.test/x.png">',
    };
    const { status, body } = await service.call("POST", "/v1/emails", mail, { key: secret });
    expect(status).toBe(202);
    await turnUntil(clock, async () => (await textsOf(`waiting: ${body.id}`)).length > 0);
    const link = /\/a\/[\w-]+/.exec((await textsOf(`waiting: ${body.id}`)).join())?.[0] ?? "";
    expect(link).not.toBe("");
    return { id: body.id, link };
  }
  const page = async (method: string, path: string) => {
    const { status, body, headers } = await service.call(method, path, undefined, { key: "none" });
    return { status, body: String(body), policy: headers.get("content-security-policy") };
  };
  const statusOf = async (id: string) => (await service.call("GET", `/v1/emails/${id}`)).body.status;

  test("opening the link shows the message as text and decides nothing, and one POST approves it", async () => {
    const { id, link } = await waiting();
    for (let scan = 0; scan < 2; scan++) {
      const { status, body, policy } = await page("GET", link);
      expect([status, body.includes("Pay now"), body.includes("Dear &lt;b&gt;you&lt;/b&gt;")]).toEqual([
        200,
        true,
        true,
      ]);
      expect([body.includes("evil.test"), policy?.startsWith("default-src 'none'")]).toEqual([false, true]);
    }
    expect(await statusOf(id)).toBe("accepted");
    expect((await page("POST", `${link}?decision=approve`)).body).toContain("<h1>Approved");
    await service.message(id, "sent");
    for (const decision of ["approve", "reject"])
      expect((await page("POST", `${link}?decision=${decision}`)).body).toContain("Decided already");
    const { body } = await wide("GET", `/v1/audit-log?target=${id}`);
    expect(body.data[0]).toMatchObject({ action: "email.approve", actor: { type: "member", name: OWNER } });
    await look(isOver("approval_waiting"));
  });

  test("one POST rejects it", async () => {
    const { id, link } = await waiting();
    expect((await page("POST", `${link}?decision=reject`)).body).toContain("<h1>Rejected");
    await service.message(id, "failed");
  });

  test("a forged link, one of a reader who gets no notices any more, and one that is too old decide nothing", async () => {
    const { id, link } = await waiting();
    for (const forged of [`${link}x`, `${link.slice(0, -2)}AA`, "/a/x"])
      expect([forged, (await page("POST", `${forged}?decision=approve`)).status]).toEqual([forged, 404]);
    await wide("PATCH", "/v1/account", { notices: { to: ["other@one.test"] } });
    expect((await page("POST", `${link}?decision=approve`)).status).toBe(404);
    await wide("PATCH", "/v1/account", { notices: { to: null } });
    expect((await page("GET", link)).status).toBe(200);
    clock.shift(7 * DAY_MS);
    expect((await page("POST", `${link}?decision=approve`)).status).toBe(404);
    await service.message(id, "failed");
  });
});

test("the end of an erasure is a notice that ends as it begins, without the address", async () => {
  const { body } = await service.call("POST", "/v1/erasures", { email: "gone@one.test" });
  await turnUntil(clock, async () => (await mails(`done: ${body.id}`)).length === 1);
  const [notice] = await notices("erasure_done");
  expect(notice).toMatchObject({ subject: body.id, endedAt: expect.any(String) });
  expect(JSON.stringify(notice)).not.toContain("gone@one.test");
  // A member with the address stays.
  expect(notice?.message).toEndWith("no message and no contact with that address is left.");
});
