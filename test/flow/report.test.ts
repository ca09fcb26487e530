import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createTransport } from "nodemailer";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { type Inspect, runReading } from "../../src/flows/mime/reading-tasks.ts";
import { createInboundHandler } from "../../src/flows/receive/inbound-handler.ts";
import { REREAD_DELAYS_MS } from "../../src/flows/deliver/early-reports.ts";
import { takeFeedback, takeReport } from "../../src/flows/deliver/report.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { reason } from "../support/reason.ts";
import { limitsOf } from "../../src/flows/deliver/reputation.ts";

let service: TestService;
let relay: TestMx;
let clock: PausingClock;

beforeEach(async () => {
  relay = startMx();
  clock = pausingClock();
  const settings = { DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` };
  service = await startService(settings, clock);
  await verifiedDomain(service, "sender.test");
});
afterEach(async () => {
  await service.stop();
  relay.stop();
});

/** The machine's clock, but the pauses of waiting reports can be made to last until the test ends them. */
interface PausingClock extends Clock {
  /** From now on such a pause lasts. Resolves when one has begun. */
  hold(): Promise<void>;
  /** Ends those that last, and later ones do not last. */
  goOn(): void;
}

function pausingClock(): PausingClock {
  const lasting = new Set<() => void>();
  let begun: PromiseWithResolvers<void> | null = null;
  return {
    ...systemClock,
    after(ms, fire) {
      if (begun === null || !REREAD_DELAYS_MS.includes(ms)) return systemClock.after(ms, fire);
      lasting.add(fire);
      begun.resolve();
      return () => void lasting.delete(fire);
    },
    hold() {
      begun = Promise.withResolvers<void>();
      return begun.promise;
    },
    goOn() {
      begun = null;
      for (const fire of [...lasting]) fire();
    },
  };
}

/** Sends a message to the smarthost. Returns its id and return path. */
async function posted(to = "a@one.test"): Promise<string> {
  const mail = { from: { email: "a@sender.test" }, to: [{ email: to }], subject: "Hi", text: "x" };
  return (await service.call("POST", "/v1/emails", mail)).body.id;
}

async function sent(to?: string): Promise<{ id: string; returnPath: string }> {
  const id = await posted(to);
  await service.message(id, "sent");
  return { id, returnPath: relay.messages.items.at(-1)?.mailFrom ?? "" };
}

/** Delivers a raw message to the listener, as another server does. */
async function deliver(to: string, raw: string): Promise<void> {
  const transport = createTransport({ host: "127.0.0.1", port: service.smtpPort, ignoreTLS: true });
  await transport.sendMail({ envelope: { from: "", to }, raw: raw.replaceAll("\n", "\r\n") });
  transport.close();
}

const dsn = (
  action: string,
  status: string,
  diagnostic: string,
  others = "",
) => `From: MAILER-DAEMON@relay.test
To: bounce@sender.test
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

The mail system.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; relay.test
${others}
Final-Recipient: rfc822; somebody-else@elsewhere.test
Action: ${action}
Status: ${status}
Remote-MTA: dns; mx.one.test
Diagnostic-Code: smtp; ${diagnostic}
--b--
`;

/** The part of a report about one more recipient. */
const also = (email: string, action: string, status: string) => `
Final-Recipient: rfc822; ${email}
Action: ${action}
Status: ${status}
`;

const arf = `From: fbl@provider.test
To: bounce@sender.test
Subject: complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

A complaint.
--b
Content-Type: message/feedback-report

Feedback-Type: abuse
Original-Mail-From: <RETURN-PATH>
User-Agent: Provider/1.0
Version: 1
--b--
`;

const autoReply = `From: a@one.test
To: bounce@sender.test
Subject: Out of office
Auto-Submitted: auto-replied

I am away. Undelivered, user unknown, mailbox full.
`;

async function suppressions() {
  return service.app.db.all<{
    email: string;
    reason: string;
    bounce_type: string | null;
    expires_at: number | null;
  }>("SELECT email, reason, bounce_type, expires_at FROM suppressions");
}

async function counted() {
  return service.app.db.all<{ settled: number; bounced: number; complained: number }>(
    "SELECT SUM(settled) AS settled, SUM(bounced) AS bounced, SUM(complained) AS complained FROM reputation",
    [],
  );
}

describe("a report to a return path", () => {
  test.each([
    ["an unknown user", "5.1.1", "550 5.1.1 No such user", "bounced", "hard"],
    ["a full mailbox", "5.2.2", "552 5.2.2 Mailbox full", "bounced", "soft"],
    ["a policy", "5.7.1", "554 5.7.1 Rejected by policy", "failed", null],
  ])(
    "a report to a return path that contains %s gives the recipient its state",
    async (_, status, diagnostic, expected, type) => {
      const { id, returnPath } = await sent();
      await deliver(returnPath, dsn("failed", status, diagnostic));
      const record = await service.message(id, expected);
      expect(record.recipients[0]).toMatchObject({
        email: "a@one.test",
        status: expected,
        enhancedCode: status,
        mx: "mx.one.test",
      });
      const entries = await suppressions();
      if (type === null) expect(entries).toEqual([]);
      else {
        expect(record.events.at(-1)).toMatchObject({
          type: "bounce",
          email: "a@one.test",
          data: { bounce: { type } },
        });
        expect(entries).toMatchObject([{ email: "a@one.test", reason: "bounce", bounce_type: type }]);
        expect(entries[0]?.expires_at === null).toBe(type === "hard");
      }
    },
  );

  test("a report to a return path that is a complaint suppresses for good", async () => {
    const { id, returnPath } = await sent();
    await deliver(returnPath, arf);
    const record = await service.message(id, "complained");
    expect(record.events.at(-1)).toMatchObject({ type: "complaint", email: "a@one.test" });
    expect(await suppressions()).toMatchObject([{ reason: "complaint", expires_at: null }]);
  });

  test.each<[string, string, string, string]>([
    ["ours failed, another was delivered", also("A@one.test", "failed", "5.2.2"), "delivered", "bounced"],
    ["ours was delivered, another failed", also("a@one.test", "delivered", "2.1.5"), "failed", "sent"],
    ["ours waits, another failed", also("a@one.test", "delayed", "4.4.1"), "failed", "sent"],
    ["another failed twice over", also("b@one.test", "failed", "5.2.2"), "failed", "bounced"],
  ])(
    "a report to a return path of several recipients, if %s, is about ours",
    async (_, others, action, expected) => {
      const { id, returnPath } = await sent();
      await deliver(returnPath, dsn(action, "5.1.1", "550 5.1.1 No such user", others));
      const { status } = await service.message(id, expected);
      expect(status).toBe(expected);
      const entries = expected === "sent" ? [] : [{ email: "a@one.test", bounce_type: "soft" }];
      expect(await suppressions()).toMatchObject(entries);
      expect(await suppressions()).toHaveLength(entries.length);
    },
  );

  test("a report to a return path changes a delivered recipient too, whose host accepted the message before it knew", async () => {
    const { id, returnPath } = await sent();
    await service.app.db.write([
      { sql: "UPDATE recipients SET status = 'delivered' WHERE message_id = ?", args: [id] },
    ]);
    await deliver(returnPath, dsn("failed", "5.1.1", "550 5.1.1 No such user"));
    expect((await service.message(id, "bounced")).status).toBe("bounced");
  });

  test.each<[string, () => string, () => string, string, object]>([
    [
      "a soft bounce after a hard one",
      () => dsn("failed", "5.1.1", "550 5.1.1 No such user"),
      () => dsn("failed", "5.2.2", "552 5.2.2 Mailbox full"),
      "bounced",
      { reason: "bounce", bounce_type: "hard", expires_at: null },
    ],
    [
      "a bounce after a complaint",
      () => arf,
      () => dsn("failed", "5.2.2", "552 5.2.2 Mailbox full"),
      "complained",
      { reason: "complaint", bounce_type: null, expires_at: null },
    ],
    [
      "a complaint after a complaint",
      () => arf,
      () => arf,
      "complained",
      { reason: "complaint", bounce_type: null, expires_at: null },
    ],
  ])(
    "a report to a return path that is %s changes no state, list, event or count",
    async (_, first, second, status, entry) => {
      const { id, returnPath } = await sent();
      await deliver(returnPath, first());
      const before = await service.message(id, status);
      const counts = await counted();
      await deliver(returnPath, second());
      expect((await service.message(id, status)).events).toEqual(before.events);
      expect(await counted()).toEqual(counts);
      expect(counts).toMatchObject([{ settled: 1, bounced: status === "bounced" ? 1 : 0 }]);
      expect(await suppressions()).toMatchObject([entry]);
      expect(await suppressions()).toHaveLength(1);
    },
  );

  test.each<[string, string, string, object]>([
    ["a soft bounce", "5.2.2", "552 5.2.2 Mailbox full", { reason: "complaint", expires_at: null }],
    ["a hard bounce", "5.1.1", "550 5.1.1 No such user", { reason: "bounce", expires_at: null }],
    ["a refusal", "5.7.1", "550 5.7.1 Blocked by policy", { reason: "complaint", expires_at: null }],
  ])(
    "a report to a return path that is a complaint after %s is a complaint, and suppresses for good",
    async (_, status, diagnostic, entry) => {
      const { id, returnPath } = await sent();
      await deliver(returnPath, dsn("failed", status, diagnostic));
      await service.message(id, status === "5.7.1" ? "failed" : "bounced");
      await deliver(returnPath, arf);
      const record = await service.message(id, "complained");
      expect(record.events.at(-1)).toMatchObject({ type: "complaint", email: "a@one.test" });
      expect(await suppressions()).toMatchObject([entry]);
    },
  );

  test("a report to a return path that is a complaint while the message is deferred ends its tries", async () => {
    relay.set({ RCPT: "451 4.3.0 Later" });
    const id = await posted();
    await service.message(id, "delivery_delayed");
    const from = relay.commands.items.findLast((line) => line.startsWith("MAIL"));
    await deliver(/<(.+)>/.exec(from ?? "")?.[1] ?? "", arf);
    await service.message(id, "complained");
    expect(await suppressions()).toMatchObject([{ reason: "complaint", expires_at: null }]);
    expect(await service.app.db.all("SELECT 1 FROM recipients WHERE due_at IS NOT NULL", [])).toEqual([]);
  });

  test("a report to a return path in capitals reaches the same recipient, and its repetition changes nothing more", async () => {
    const { id, returnPath } = await sent();
    await deliver(returnPath.toUpperCase(), dsn("failed", "5.1.1", "550 5.1.1 No such user"));
    await deliver(returnPath, dsn("failed", "5.1.1", "550 5.1.1 No such user"));
    const record = await service.message(id, "bounced");
    expect(record.events.filter((event: { type: string }) => event.type === "bounce").length).toBe(1);
  });

  test.each([
    ["an automatic reply", autoReply],
    ["a notice of delay", dsn("delayed", "4.4.1", "451 4.4.1 Not yet")],
  ])("a report to a return path that is %s changes nothing", async (_, raw) => {
    const { id, returnPath } = await sent();
    await deliver(returnPath, raw);
    expect((await service.message(id, "sent")).events.length).toBe(4);
    expect(await suppressions()).toEqual([]);
  });

  /** A message whose delivery the smarthost does not answer until it is released, and its return path. */
  async function underWay(): Promise<{ id: string; returnPath: string; release: (reply: string) => void }> {
    const { promise: reply, resolve: release } = Promise.withResolvers<string>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    relay.set({
      ".": () => {
        hold();
        return reply;
      },
    });
    const id = await posted();
    await held;
    const from = relay.commands.items.find((line) => line.startsWith("MAIL")) ?? "";
    return { id, returnPath: /<([^>]+)>/.exec(from)?.[1] ?? "", release };
  }

  /**
   * Delivers a report that comes too early. Resolves when it waits, with the promise of its end. Rejects if it is
   * answered before.
   */
  async function waiting(returnPath: string): Promise<{ end: Promise<void> }> {
    const begun = clock.hold();
    const end = deliver(returnPath, unknownUser);
    const answered = end.then(() => Promise.reject(new Error("answered already")));
    await Promise.race([answered, begun]);
    answered.catch(() => undefined);
    return { end };
  }

  const unknownUser = dsn("failed", "5.1.1", "550 5.1.1 No such user");

  test("a report to a return path that overtakes the record of its delivery waits a moment for it", async () => {
    const { id, returnPath, release } = await underWay();
    const early = await waiting(returnPath);
    release("250 ok");
    await service.message(id, "sent");
    clock.goOn();
    await early.end;
    const { events } = await service.message(id, "bounced");
    expect(events.map(({ type }: { type: string }) => type)).toEqual([
      "accepted",
      "queued",
      "sending",
      "sent",
      "bounce",
    ]);
  });

  test("a report to a return path that overtakes it by more is deferred, and counts at the next try", async () => {
    const { id, returnPath, release } = await underWay();
    expect(String(await reason(deliver(returnPath, unknownUser)))).toContain("451");
    release("250 ok");
    await service.message(id, "sent");
    await deliver(returnPath, unknownUser);
    expect((await service.message(id, "bounced")).status).toBe("bounced");
  });

  test("a report to a return path that returns a large message does not wait, because its memory is needed", async () => {
    const { returnPath, release } = await underWay();
    const large = `${unknownUser}${"x\n".repeat(200_000)}`;
    // A report that waited would do so for ever.
    void clock.hold();
    expect(String(await reason(deliver(returnPath, large)))).toContain("451");
    release("250 ok");
  });

  test("a report to a return path that waits is deferred at once when the service stops", async () => {
    const { returnPath, release } = await underWay();
    const early = await waiting(returnPath);
    const stopped = service.app.stop();
    // Its pause lasts, so only the stop can have ended it.
    expect(String(await reason(early.end))).toContain("451");
    release("250 ok");
    await stopped;
  });

  test("a report to a return path whose message has been removed changes nothing", async () => {
    const { id, returnPath } = await sent();
    await service.app.db.write([{ sql: "DELETE FROM recipients WHERE message_id = ?", args: [id] }]);
    await deliver(returnPath, dsn("failed", "5.1.1", "550 5.1.1 No such user"));
    expect(await suppressions()).toEqual([]);
  });

  test("a report to a return path with an altered token is refused at RCPT", async () => {
    const { id, returnPath } = await sent();
    const altered = returnPath.replace(/^b\+./, (start) => (start === "b+0" ? "b+1" : "b+0"));
    expect(
      String(await reason(deliver(altered, dsn("failed", "5.1.1", "550 5.1.1 No such user")))),
    ).toContain("550");
    expect((await service.message(id, "sent")).status).toBe("sent");
  });
});

const asking = {
  clock: systemClock,
  host: "mx.test",
  resolve: () => Promise.reject(new Error("nobody is asked")),
};
const inspect: Inspect = (asked) => runReading(asking, asked);

describe("a complaint whose recipient, deferred before, changes at the same time", () => {
  /** A message that was deferred. */
  async function putOff(): Promise<string> {
    relay.set({ RCPT: "451 4.3.0 Later" });
    const id = await posted();
    await service.message(id, "delivery_delayed");
    return id;
  }

  /** Handles the complaint. Runs `meanwhile` between the read of its recipient and the write. */
  function take(id: string, meanwhile: () => Promise<unknown>) {
    const { db, queue } = service.app;
    const slow: Inspect = async (asked) => {
      const told = await inspect(asked);
      await meanwhile();
      return told;
    };
    const deps = { db, queue, clock: systemClock, inspect: slow, suspension: limitsOf(5) };
    return takeReport(deps, id, 0, { raw: Buffer.from(arf.replaceAll("\n", "\r\n")), session: null });
  }

  /** Makes the message be retried at once. */
  const tryAgain = (id: string) =>
    service.app.db.write([{ sql: "UPDATE recipients SET due_at = 1 WHERE message_id = ?", args: [id] }]);

  test("a complaint whose recipient, deferred before, changes at the same time counts the recipient as settled once if the next try has settled it", async () => {
    const id = await putOff();
    const taken = await take(id, async () => {
      relay.set({ RCPT: "250 ok" });
      await tryAgain(id);
      await service.message(id, "sent");
    });
    expect(taken).toBe("taken");
    expect((await service.message(id, "complained")).status).toBe("complained");
    expect(await counted()).toEqual([{ settled: 1, bounced: 0, complained: 1 }]);
  });

  test("a complaint whose recipient, deferred before, changes at the same time is deferred if the next try is in progress", async () => {
    const id = await putOff();
    const { promise: reply, resolve: release } = Promise.withResolvers<string>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    relay.set({
      RCPT: () => {
        hold();
        return reply;
      },
    });
    const taken = await take(id, async () => {
      await tryAgain(id);
      await held;
    });
    expect(taken).toBe("early");
    release("250 ok");
    expect((await service.message(id, "sent")).status).toBe("sent");
  });
});

describe("a complaint to the address for complaints", () => {
  const take = (raw: string) => {
    const { verp: verpKey, unsubscribe: unsubscribeKey } = openKeys(null, service.folder);
    const { db, queue } = service.app;
    return takeFeedback(
      {
        db,
        queue,
        clock: systemClock,
        verpKey,
        unsubscribeKey,
        inspect,
        suspension: limitsOf(5),
      },
      { raw: Buffer.from(raw.replaceAll("\n", "\r\n")), session: null },
    );
  };

  test("a complaint to the address for complaints is about the recipient in the return path of its message", async () => {
    const { id, returnPath } = await sent();
    expect(await take(arf.replace("RETURN-PATH", returnPath))).toBe("taken");
    expect((await service.message(id, "complained")).status).toBe("complained");
    expect(await suppressions()).toMatchObject([{ email: "a@one.test", reason: "complaint" }]);
  });

  test.each([
    ["a forged token", (path: string) => path.replace(/^b\+./, (start) => (start === "b+0" ? "b+1" : "b+0"))],
    ["no token", () => "ann@sender.test"],
    ["nothing", () => ""],
  ])("a complaint to the address for complaints with %s changes nothing", async (_, forge) => {
    const { id, returnPath } = await sent();
    expect(await take(arf.replace("RETURN-PATH", forge(returnPath)))).toBe("taken");
    expect((await service.message(id, "sent")).status).toBe("sent");
    expect(await suppressions()).toEqual([]);
  });
});

test("a report to one mailbox is read once, in however many ways its address is written", async () => {
  const first = await sent();
  const second = await sent("b@two.test");
  const { db, queue } = service.app;
  let readings = 0;
  const door = createInboundHandler({
    db,
    queue,
    clock: systemClock,
    hostname: `mx.${SERVICE_DOMAIN}`,
    serviceDomain: SERVICE_DOMAIN,
    verpKey: openKeys(null, service.folder).verp,
    unsubscribeKey: openKeys(null, service.folder).unsubscribe,
    publicIps: [],
    dmarcReporters: [],
    suspension: limitsOf(5),
    async inspect(wanted) {
      readings++;
      return inspect(wanted);
    },
  });
  const inCases = (address: string) => [address, address.toUpperCase(), address.replace("@", "@M")];
  const bounce = [first, second].flatMap(({ returnPath }) => inCases(returnPath));
  const session = { ip: "192.0.2.1", helo: "x", tls: null, smtpUtf8: false };
  const report = Buffer.from(dsn("failed", "5.1.1", "550 no such user").replaceAll("\n", "\r\n"));
  const send = (rcptTo: string[]) => door.message({ ...session, mailFrom: "a@b.test", rcptTo }, report);
  expect(await send(bounce)).toMatchObject({ code: 250 });
  expect(readings).toBe(2);
  for (const { id } of [first, second]) expect((await service.message(id, "bounced")).status).toBe("bounced");
  const fbl = `fbl@${SERVICE_DOMAIN}`;
  expect(await send([fbl, fbl.toUpperCase(), `FBL@${SERVICE_DOMAIN}`])).toMatchObject({ code: 250 });
  expect(readings).toBe(3);
});
