import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type Clock, within } from "../../src/core/time/clock.ts";
import { log } from "../../src/log.ts";
import { dkimPrivateKey, dkimRecord, generateDkimKey, signDkim } from "../../src/mail/auth/dkim.ts";
import { textStrings } from "../../src/net/zone/records.ts";
import {
  type Inspector,
  MAX_MAILS_WAITING,
  MAX_OCTETS_WAITING,
  openInspector,
  STALL_MS,
} from "../../src/wiring/cpu/inspector.ts";
import { IDLE_MS, MAX_TASKS_IN_HAND, cpusFor } from "../../src/wiring/cpu/pool.ts";
import { MAX_TASK_MS } from "../../src/wiring/cpu/cpu.ts";
import { decoded, newContent } from "../../src/store/contents/content-bytes.ts";
import { bodyIn } from "../../src/store/contents/message-body.ts";
import { startDns } from "../support/dns.ts";
import { hurried } from "../support/hurried-clock.ts";
import { manualClock } from "../support/manual-clock.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const SESSION = { ip: "192.0.2.1", helo: "out.test", mailFrom: "ann@from.test" };
const HOST = "mx.test";
const open: Inspector[] = [];

afterEach(() => {
  for (const inspector of open.splice(0)) inspector.close();
});

/** The real threads, or ones that obey the message. */
function inspector(over: { clock?: Clock; dns?: string[]; open?: () => Worker; threads?: number } = {}) {
  const made = openInspector(
    { clock: over.clock ?? systemClock, log: log("smtp") },
    {
      host: HOST,
      dnsServers: over.dns ?? ["127.0.0.1:1"],
      cpus: over.threads ?? 1,
      ...(over.open === undefined ? {} : { open: over.open }),
    },
  );
  open.push(made);
  return made;
}

function obedient(): Worker {
  return new Worker(new URL("../support/inspect-worker.ts", import.meta.url).href, { ref: false });
}

/**
 * Returns a function that opens threads. The first `count` of them have loaded their code already. With a hurried clock,
 * a busy machine has too little time to load it before a thread counts as broken.
 */
async function loaded(count: number): Promise<() => Worker> {
  const threads = Array.from({ length: count }, obedient);
  // Each sends a message once it has loaded.
  const ready = (thread: Worker) =>
    new Promise((resolve) => thread.addEventListener("message", resolve, { once: true }));
  await Promise.all(threads.map(ready));
  return () => threads.pop() ?? obedient();
}

const mail = (text: string) => ({ kind: "mail", raw: Buffer.from(text), session: SESSION }) as const;

describe("a message is inspected in a thread", () => {
  test("an inspected message has its attachments, but without their bytes", async () => {
    const dns = await startDns(
      { name: "from.test", type: "TXT", data: "v=spf1 ip4:192.0.2.1 -all" },
      { name: "_dmarc.from.test", type: "TXT", data: "v=DMARC1; p=reject" },
    );
    const raw = Buffer.from(
      [
        "From: Ann <ann@from.test>",
        "Subject: Hi",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "",
        "Yes.",
        "",
        "On 1 May, Bob wrote:",
        "> Well?",
        "--b",
        "Content-Type: image/png",
        "Content-Disposition: attachment; filename=a.png",
        "Content-Transfer-Encoding: base64",
        "",
        "UE5H",
        "--b--",
        "",
      ].join("\r\n"),
    );
    const found = await inspector({ dns: [dns.address] }).inspect({ kind: "mail", raw, session: SESSION });
    expect(found).toMatchObject({
      mail: {
        unread: null,
        from: { email: "ann@from.test", name: "Ann" },
        subject: "Hi",
        attachments: [{ filename: "a.png", contentType: "image/png", size: 3 }],
      },
      authentication: {
        verdict: {
          spf: { result: "pass", domain: "from.test" },
          dmarc: { result: "pass", policy: "reject", domain: "from.test" },
        },
        header: expect.stringContaining(`Authentication-Results: ${HOST};`),
      },
    });
    expect(found?.mail.attachments[0]).not.toHaveProperty("bytes");
    const { body, raw: kept } = found?.contents ?? {};
    expect(bodyIn(decoded(body?.bytes ?? new Uint8Array(), body?.encoding ?? "plain"))).toMatchObject({
      text: expect.stringMatching(/^Yes\.\n/),
      replyText: "Yes.",
      headers: { Subject: "Hi" },
    });
    expect(kept).toEqual(newContent(raw));
    dns.stop();
  });

  test("signed messages of many domains that arrive together do not delay each other", async () => {
    const domains = Array.from({ length: 100 }, (_, nth) => `sender${nth}.test`);
    const key = await generateDkimKey();
    const dns = await startDns(
      ...domains.flatMap((name) => [
        { name, type: "TXT" as const, data: "v=spf1 ip4:192.0.2.1 -all" },
        {
          name: `s._domainkey.${name}`,
          type: "TXT" as const,
          data: textStrings(dkimRecord(key.publicKeyBase64)),
        },
      ]),
    );
    const privateKey = dkimPrivateKey(key.privateKeyPem);
    const mails = await Promise.all(
      domains.map(async (domain) => {
        const raw = Buffer.from(`From: ann@${domain}\r\nSubject: Hi\r\n\r\nYes.\r\n`);
        const signed = await signDkim({ raw, domain, keys: [{ selector: "s", privateKey }] });
        return { kind: "mail", raw: signed, session: { ...SESSION, mailFrom: `ann@${domain}` } } as const;
      }),
    );
    const { inspect } = inspector({ dns: [dns.address] });
    const found = await within(systemClock, MAX_TASK_MS / 2, Promise.all(mails.map(inspect)), null);
    expect(found?.map((one) => one?.authentication.verdict.dkim)).toEqual(
      domains.map((domain) => [{ result: "pass", domain, selector: "s" }]),
    );
    dns.stop();
  });

  test("without a session no check is made and no name server queried", async () => {
    const found = await inspector().inspect({
      kind: "mail",
      raw: Buffer.from("From: a@b.test\r\n\r\nx"),
      session: null,
    });
    expect(found?.authentication.header).toBe(`Authentication-Results: ${HOST}; none\r\n`);
    expect(found?.authentication.verdict.dmarc.result).toBe("none");
  });

  test("messages that wait for name servers wait in parallel", async () => {
    const dns = await startDns();
    const inspecting = inspector({ dns: [dns.address] });
    const names = Array.from({ length: 100 }, (_, i) => `d${i}.test`);
    for (const name of names) {
      dns.add({ name, type: "TXT", data: "v=spf1 ip4:192.0.2.1 -all" });
      dns.behave("hold", name);
    }
    const all = names.map((name) => {
      const raw = Buffer.from(`From: a@${name}\r\n\r\nx`);
      return inspecting.inspect({ kind: "mail", raw, session: { ...SESSION, mailFrom: `a@${name}` } });
    });
    await dns.queries.reached(names.length);
    for (const name of names) dns.behave("answer", name);
    dns.release();
    const results = (await Promise.all(all)).map((found) => found?.authentication.verdict.spf.result);
    expect(results).toEqual(names.map(() => "pass"));
    dns.stop();
  });
});

/** Number of threads that a message breaks: the first, and one that has it alone. */
const BROKEN_THREADS = 2;

/** Has a thread inspect a message that breaks it, and others together with it. */
async function broken(word: string, haste: number) {
  const threads = await loaded(BROKEN_THREADS + 1);
  const inspecting = inspector({ clock: hurried(haste), open: threads });
  const guilty = inspecting.inspect(mail(`${word}\r\nFrom: ann@from.test\r\nSubject: Hi\r\n\r\nbody`));
  const others = Array.from({ length: 20 }, (_, i) => inspecting.inspect(mail(`Subject: ${i}\r\n\r\n`)));
  return { inspecting, guilty, others };
}

async function isSurvived({ inspecting, guilty, others }: Awaited<ReturnType<typeof broken>>): Promise<void> {
  expect(await guilty).toMatchObject({
    mail: { unread: "too_slow", from: { email: "ann@from.test" }, subject: "Hi", attachments: [] },
    authentication: {
      verdict: { spf: { result: "none" }, dmarc: { result: "none", policy: null } },
      header: expect.stringContaining("dmarc=none"),
    },
  });
  const subjects = (await Promise.all(others)).map((found) => found?.mail.subject);
  expect(subjects).toEqual(others.map((_, i) => String(i)));
  expect((await inspecting.inspect(mail("Subject: later\r\n\r\n")))?.mail.subject).toBe("later");
}

/** A message that gets lost is given up after ten seconds, in which other tests run. */
let lost: Awaited<ReturnType<typeof broken>>;
beforeAll(async () => {
  lost = await broken("lost", MAX_TASK_MS / 5000);
  // It outlives the test that runs now.
  open.splice(open.indexOf(lost.inspecting), 1);
});
afterAll(() => lost.inspecting.close());

const WITH_PARTS = Buffer.from(
  [
    "From: MAILER-DAEMON@from.test",
    "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
    "",
    "--b",
    "",
    "It came back.",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; from.test",
    "",
    "Final-Recipient: rfc822; bob@to.test",
    "Action: failed",
    "Status: 5.1.1",
    "Diagnostic-Code: smtp; 550 5.1.1 No such user",
    "--b",
    "Content-Type: image/png",
    "Content-Transfer-Encoding: base64",
    "",
    "UE5H",
    "--b--",
    "",
  ].join("\r\n"),
);

describe("of a message is read in a thread", () => {
  test("the recipients that a report is about", async () => {
    const found = await inspector().inspect({
      kind: "report",
      session: null,
      raw: WITH_PARTS,
      email: "bob@to.test",
    });
    expect(found).toMatchObject({
      end: { status: "bounced", bounceType: "hard", finding: { smtpCode: 550, recipient: "bob@to.test" } },
      returnPaths: [],
    });
  });

  test("nothing, if it is an ordinary message", async () => {
    const found = await inspector().inspect({
      kind: "report",
      session: null,
      raw: mail("Subject: x\r\n\r\n").raw,
      email: null,
    });
    expect(found).toEqual({ end: null, returnPaths: [], original: null });
  });

  test("an attachment's bytes, by its position, or null if there is none", async () => {
    const inspecting = inspector();
    const bytes = async (ord: number) =>
      (await inspecting.inspect({ kind: "attachment", raw: WITH_PARTS, ord }))?.bytes;
    expect(Buffer.from((await bytes(1)) ?? []).toString()).toBe("PNG");
    expect(await bytes(2)).toBeNull();
  });
});

describe("a message that breaks the thread", () => {
  test.each([
    ["holds it", "spin", STALL_MS / 500],
    ["breaks it", "throw", 1],
  ])("%s: its header and sender are still inspected, and so are other messages", async (_, word, haste) =>
    isSurvived(await broken(word, haste)),
  );

  test("blocks it: a report then gives nothing, and so does an attachment", async () => {
    const threads = await loaded(2 * BROKEN_THREADS);
    const inspecting = inspector({ clock: hurried(STALL_MS / 500), open: threads });
    const { raw } = mail("spin");
    expect(await inspecting.inspect({ kind: "report", session: null, raw, email: null })).toEqual({
      end: null,
      returnPaths: [],
      original: null,
    });
    await expect(inspecting.inspect({ kind: "attachment", raw, ord: 0 })).rejects.toThrow("cannot be read");
  });

  test("an error of ours is thrown, so that the sender tries again", async () => {
    const inspecting = inspector({ open: obedient });
    await expect(inspecting.inspect(mail("fail"))).rejects.toThrow("no way");
    expect((await inspecting.inspect(mail("Subject: x\r\n\r\n")))?.mail.subject).toBe("x");
  });

  test("a thread that does not start is an error too", async () => {
    const inspecting = inspector({ open: () => new Worker("file:///nowhere/at-all.ts", { ref: false }) });
    await expect(inspecting.inspect(mail("Subject: x\r\n\r\n"))).rejects.toThrow();
  });
});

describe("limits", () => {
  test("messages are limited in number; one more is refused, and the end rejects the rest", async () => {
    const inspecting = inspector({ open: obedient });
    const held = Array.from({ length: MAX_TASKS_IN_HAND + MAX_MAILS_WAITING }, () =>
      inspecting.inspect(mail("hold")),
    );
    expect(await inspecting.inspect(mail("hold"))).toBeNull();
    inspecting.close();
    const ends = await Promise.allSettled(held);
    expect(ends.every(({ status }) => status === "rejected")).toBe(true);
    await expect(inspecting.inspect(mail("x"))).rejects.toThrow("closed");
  });

  test("octets are limited too", async () => {
    const inspecting = inspector({ open: obedient });
    const raw = Buffer.alloc(40 * 1024 * 1024, "hold ");
    // One is running, one is next, and those after it count as waiting.
    const waiting = Math.ceil(MAX_OCTETS_WAITING / raw.length);
    const held = Array.from({ length: 2 + waiting }, () =>
      inspecting.inspect({ kind: "mail", raw, session: null }),
    );
    expect(await inspecting.inspect({ kind: "mail", raw, session: null })).toBeNull();
    inspecting.close();
    await Promise.allSettled(held);
  });

  test("an idle thread is ended, and another one starts with the next message", async () => {
    const clock = manualClock();
    let opened = 0;
    const counted = () => {
      opened++;
      return obedient();
    };
    const inspecting = inspector({ clock, open: counted });
    await inspecting.inspect(mail("x"));
    await clock.armed(IDLE_MS);
    clock.advance(IDLE_MS - 1);
    await inspecting.inspect(mail("x"));
    expect(opened).toBe(1);
    clock.advance(IDLE_MS);
    await inspecting.inspect(mail("x"));
    expect(opened).toBe(2);
  });

  test.each([
    [1, 1],
    [2, 1],
    [4, 2],
    [64, 4],
  ])("a machine with %i processors runs %i threads", (processors, threads) => {
    expect(cpusFor(processors)).toBe(threads);
  });

  test("a thread is started only if the existing ones are busy", async () => {
    let opened = 0;
    const inspecting = inspector({
      threads: 2,
      open: () => {
        opened++;
        return obedient();
      },
    });
    const held = Array.from({ length: 16 }, () => inspecting.inspect(mail("hold")));
    expect(opened).toBe(1);
    held.push(inspecting.inspect(mail("hold")));
    expect(opened).toBe(2);
    held.push(inspecting.inspect(mail("hold")));
    expect(opened).toBe(2);
    inspecting.close();
    await Promise.allSettled(held);
  });
});

test("a message that gets lost in the thread: its header and sender are still inspected, and so are other messages", async () => {
  await isSurvived(lost);
});
