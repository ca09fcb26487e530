import { afterEach, describe, expect, test } from "bun:test";
import {
  boundedTranscript,
  MAX_TRANSCRIPT_CHARS,
  MAX_TRANSCRIPT_LINE_CHARS,
} from "../../src/store/messages/attempts.ts";
import { MAX_TRANSCRIPT_LINES } from "../../src/core/text.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
const peers: TestMx[] = [];

async function stopAll(): Promise<void> {
  await service.stop();
  for (const peer of peers.splice(0)) peer.stop();
}

interface ShownAttempt {
  email: string;
  attempt: number;
  status: string;
  startedAt: string;
  durationMs: number;
  mx: string | null;
  ip: string | null;
  tls: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  lines: string[];
}

/** A service that uses this peer as the MX of each domain. */
async function startMxService(options: Parameters<typeof startMx>[0] = {}): Promise<TestMx> {
  const peer = startMx(options);
  peers.push(peer);
  service = await startService({
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(peer.port),
    DELIVERY_RETRY_SECONDS: "0.05",
  });
  await verifiedDomain(service, "sender.test");
  for (const name of ["one.test", "two.test"]) service.dns.add({ name, type: "A", data: "127.0.0.1" });
  return peer;
}

const send = (to: string[], more: Record<string, unknown> = {}) =>
  service.send({ from: "news@sender.test", to, text: "Words of the body", ...more });

async function attemptsOf(id: string, query = ""): Promise<ShownAttempt[]> {
  const { status, body } = await service.call("GET", `/v1/emails/${id}/attempts${query}`);
  expect(status).toBe(200);
  return body.data;
}

describe("the attempts of a message", () => {
  afterEach(stopAll);

  test("the attempts of a message show each conversation in order of time, without the message", async () => {
    const peer = await startMxService();
    peer.set({ RCPT: ["451 4.3.0 Later", "250 2.1.5 ok"], ".": "250 2.0.0 taken" });
    const id = await send(["a@one.test"]);
    await service.message(id, "delivered");
    const [first, second, ...more] = await attemptsOf(id);
    expect(more).toEqual([]);
    expect(first).toMatchObject({
      email: "a@one.test",
      attempt: 1,
      status: "delivery_delayed",
      mx: "one.test",
      ip: "127.0.0.1",
      tls: null,
      smtpCode: 451,
      enhancedCode: "4.3.0",
      diagnostic: "451 4.3.0 Later",
    });
    expect(first?.lines[0]).toBe(`* connecting to one.test [127.0.0.1]:${peer.port}`);
    expect(first?.lines[1]).toBe("S: 220 mx.test ESMTP");
    expect(first?.lines).toContain("C: RCPT TO:<a@one.test>");
    expect(first?.lines).toContain("S: 451 4.3.0 Later");
    expect(second).toMatchObject({
      attempt: 2,
      status: "delivered",
      smtpCode: 250,
      diagnostic: "250 2.0.0 taken",
    });
    expect(second?.lines.at(-1)).toBe("S: 250 2.0.0 taken");
    expect(second?.lines.join()).toMatch(/C: \(message of \d+ octets\)/);
    expect((first?.startedAt ?? "") < (second?.startedAt ?? "")).toBe(true);
    for (const { lines, durationMs } of [first, second].flatMap((each) => each ?? [])) {
      expect(lines.join("\n")).not.toContain("Words of the body");
      for (const line of lines) expect(line).toMatch(/^(?:C: |S: |\* )/);
      expect(durationMs).toBeGreaterThanOrEqual(0);
    }
  });

  test("the attempts of a message are listed in pages, each attempt once", async () => {
    await startMxService();
    const to = Array.from({ length: 5 }, (_, at) => `r${at}@one.test`);
    const id = await send(to);
    await service.message(id, "delivered");
    const walked: ShownAttempt[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await service.call(
        "GET",
        `/v1/emails/${id}/attempts?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      expect(body.data.length).toBeLessThanOrEqual(2);
      walked.push(...body.data);
      cursor = body.nextCursor;
    }
    expect(walked.map(({ email }) => email).sort()).toEqual(to);
    expect(walked).toEqual(await attemptsOf(id));
    const times = walked.map(({ startedAt }) => startedAt);
    expect(times).toEqual([...times].sort());
  });

  test("hide the credentials of a login to the smarthost", async () => {
    const relay = startMx({ extensions: ["AUTH PLAIN", "PIPELINING"] });
    peers.push(relay);
    service = await startService({
      DELIVERY: "relay",
      SMTP_RELAY_URL: `smtp://user:geheim99@127.0.0.1:${relay.port}?insecure=1`,
    });
    await verifiedDomain(service, "sender.test");
    const id = await send(["a@one.test"]);
    await service.message(id, "sent");
    const [only] = await attemptsOf(id);
    const text = only?.lines.join("\n") ?? "";
    expect(text).toContain("C: AUTH PLAIN ***");
    expect(text).not.toContain("geheim99");
    expect(text).not.toContain(Buffer.from("\0user\0geheim99").toString("base64"));
  });

  test.each([
    [
      "a captured mail",
      { DELIVERY: "capture" },
      "a@one.test",
      "delivered",
      "capture",
      /^\* 250 2\.0\.0 captured/,
    ],
    [
      "a simulated bounce",
      {},
      "bounced@simulator.mail.test",
      "bounced",
      "simulator",
      /^\* 550 5\.1\.1 simulated: no such user/,
    ],
    ["a simulated complaint", {}, "complained@simulator.mail.test", "complained", "simulator", /^\* abuse/],
    [
      "a name server in trouble",
      { DELIVERY: "mx" },
      "a@broken.test",
      "delivery_delayed",
      null,
      /^\* .*broken\.test/,
    ],
    [
      "a domain that does not exist",
      { DELIVERY: "mx" },
      "a@nowhere.test",
      "bounced",
      null,
      /^\* the domain nowhere/,
    ],
  ])(
    "the attempts of a message of %s say why there was no conversation",
    async (_, env, to, status, mx, line) => {
      service = await startService(env);
      await verifiedDomain(service, "sender.test");
      service.dns.behave("servfail", "broken.test");
      const id = await send([to]);
      await service.message(id, status);
      const [only, ...more] = await attemptsOf(id);
      expect(more).toEqual([]);
      expect(only).toMatchObject({ email: to, attempt: 1, status, mx, ip: null, tls: null });
      expect(only?.lines.length).toBe(1);
      expect(only?.lines[0]).toMatch(line);
    },
  );

  test("the attempts of a message are empty if nothing was tried: a suppressed recipient, a scheduled and a received message", async () => {
    service = await startService();
    await verifiedDomain(service, "sender.test");
    await service.call("POST", "/v1/suppressions", { email: "no@one.test" });
    const rejected = await send(["no@one.test"]);
    await service.message(rejected, "rejected");
    const scheduled = await send(["a@one.test"], {
      scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const [inboxId] = await receivingInboxes(service, "inbox.test", ["desk@inbox.test"]);
    const received = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" });
    for (const id of [rejected, scheduled, received.body.messageId]) {
      const { status, body } = await service.call("GET", `/v1/emails/${id}/attempts`);
      expect(status).toBe(200);
      expect(body).toEqual({ data: [], nextCursor: null });
    }
  });

  test("the attempts of a message are 404 for a message of another project", async () => {
    service = await startService();
    const { status, body } = await service.call("GET", `/v1/emails/msg_${"0".repeat(26)}/attempts`);
    expect([status, body.error.type]).toEqual([404, "not_found"]);
  });
});

describe("a peer that sends too much", () => {
  afterEach(stopAll);

  const ask = async (id: string) => (await attemptsOf(id))[0];
  const stored = async () =>
    service.app.db.first<{ octets: number }>(
      "SELECT length(CAST(transcript AS BLOB)) AS octets FROM attempts",
    );

  test.each([
    ["a banner of one megabyte", { banner: `220 ${"x".repeat(1_000_000)}` }, "delivery_delayed"],
    [
      "a reply of ten thousand lines",
      { answers: { RCPT: `${"550-no\r\n".repeat(9_999)}550 no` } },
      "bounced",
    ],
    [
      "a reply that is too long",
      { answers: { RCPT: `${"550-no\r\n".repeat(40_000)}550 no` } },
      "delivery_delayed",
    ],
    [
      "the longest reply it may give",
      { answers: { RCPT: `${`550-5.1.1 ${"ü".repeat(900)}\r\n`.repeat(127)}550 5.1.1 end` } },
      "bounced",
    ],
  ])("a peer that sends too much, by %s, leaves a record within the limits", async (_, options, status) => {
    await startMxService(options);
    const id = await send(["a@one.test"]);
    await service.message(id, status);
    const attempt = await ask(id);
    expect(attempt?.status).toBe(status);
    const chars = attempt?.lines.reduce((sum, line) => sum + line.length, 0) ?? 0;
    expect(chars).toBeLessThanOrEqual(MAX_TRANSCRIPT_CHARS);
    expect((await stored())?.octets).toBeLessThan(3 * MAX_TRANSCRIPT_CHARS);
  });

  test("a peer's control characters and broken UTF-8 are shown in valid JSON", async () => {
    const peer = await startMxService();
    peer.set({ RCPT: "550 5.1.1 no\x00\x07\x1b[31m\u2028 \ud83d user" });
    const id = await send(["a@one.test"]);
    await service.message(id, "bounced");
    const response = await fetch(`${service.url}/v1/emails/${id}/attempts`, {
      headers: { authorization: `Bearer ${service.projectKey}` },
    });
    const text = await response.text();
    expect(text).not.toMatch(/\\u0000|\\ud83d|\x1b/);
    const said = JSON.parse(text).data[0].lines.find((line: string) => line.startsWith("S: 550"));
    expect(said).toMatch(/^S: 550 5\.1\.1 no \[31m/);
    expect(said.isWellFormed()).toBe(true);
  });
});

describe("a stored conversation", () => {
  const line = (text: string) => `S: ${text}`;
  const cases: [string, string[], number][] = [
    ["of as many lines as are kept", Array.from({ length: MAX_TRANSCRIPT_LINES }, () => line("x")), 0],
    ["of one line more", Array.from({ length: MAX_TRANSCRIPT_LINES + 1 }, () => line("x")), 1],
    ["of as many characters as are kept", Array.from({ length: 8 }, () => "x".repeat(2048)), 0],
    ["of one character more", [...Array.from({ length: 8 }, () => "x".repeat(2048)), "y"], 1],
  ];
  test.each(cases)("%s keeps its beginning and its end", (_, lines, cut) => {
    const kept = boundedTranscript(lines);
    expect(kept.filter((each) => /^\* \d+ lines left out$/.test(each)).length).toBe(cut);
    expect(kept[0]).toBe(lines[0] ?? "");
    expect(kept.at(-1)).toBe(lines.at(-1) ?? "");
    expect(kept.length).toBeLessThanOrEqual(MAX_TRANSCRIPT_LINES);
    expect(kept.reduce((sum, each) => sum + each.length, 0)).toBeLessThanOrEqual(MAX_TRANSCRIPT_CHARS);
    if (cut === 0) expect(kept).toEqual(lines);
  });

  test("a stored conversation is cut at its limit without splitting a character", () => {
    const [cut = ""] = boundedTranscript([`${"x".repeat(MAX_TRANSCRIPT_LINE_CHARS - 1)}😀`]);
    expect(cut.length).toBe(MAX_TRANSCRIPT_LINE_CHARS);
    expect(cut.isWellFormed()).toBe(true);
  });
});
