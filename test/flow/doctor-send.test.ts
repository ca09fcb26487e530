import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { sendTest } from "../../src/commands/support/send-test.ts";
import { deliver } from "../support/mail-in.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const LIMIT_MS = 30_000;
const FOUND = "Authentication-Results: mx.far.test; dkim=pass header.d=in.test;\r\n spf=pass; dmarc=pass";
let service: TestService;
let relay: TestMx;

beforeAll(async () => {
  relay = startMx();
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}` });
  await receivingInboxes(service, "in.test", ["ann@in.test"]);
}, LIMIT_MS);
afterAll(async () => {
  await service?.stop();
  relay?.stop();
});

/** Runs the test, and answers the message with that body, if any. */
async function tested(body: string | null, waitMs = LIMIT_MS) {
  const api = {
    url: service.url,
    headers: { authorization: `Bearer ${service.projectKey}` },
    sender: undefined,
  };
  const sent = relay.messages.items.length + 1;
  const line = sendTest({ clock: systemClock, api }, "you@far.test", waitMs);
  await relay.messages.reached(sent);
  if (body !== null) {
    const id = /^message-id: (.*)$/im.exec(relay.messages.items.at(-1)?.data.toString() ?? "")?.[1] ?? "";
    const headers = ["From: you@far.test", "Subject: Re: Does this arrive?", `In-Reply-To: ${id}`];
    await deliver(service, { to: "ann@in.test", mailFrom: "you@far.test", headers, body });
  }
  return line;
}

test.each([
  [
    "an attached message",
    `Here it is.\r\n\r\n${FOUND}\r\nFrom: ann@in.test\r\n`,
    "ok",
    /dkim=pass, spf=pass, dmarc=pass/,
  ],
  ["words of a program", "SPF check: pass\r\nDKIM check: fail\r\n", "fail", /spf=pass, dkim=fail/],
  ["no results", "Yes, it did.\r\n", "warn", /without results/],
])("the answer shows what the receiver found: %s", async (_, body, status, message) => {
  const line = await tested(body);
  expect([line.name, line.status]).toEqual(["send you@far.test", status]);
  expect(line.message).toMatch(message);
});

test("without an answer in time the line says so, and how to get one", async () => {
  expect(await tested(null, 1000)).toMatchObject({
    status: "warn",
    message: expect.stringContaining("within 1 s"),
  });
});

test("a bounce shows what the receiver said", async () => {
  relay.set({ RCPT: "550 5.7.1 DMARC failed, go away" });
  const api = {
    url: service.url,
    headers: { authorization: `Bearer ${service.projectKey}` },
    sender: undefined,
  };
  const line = await sendTest({ clock: systemClock, api }, "you@far.test", LIMIT_MS);
  expect(line).toMatchObject({ status: "fail", message: expect.stringContaining("DMARC failed, go away") });
});
