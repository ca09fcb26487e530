import { afterEach, expect, test } from "bun:test";
import { startMx, type MxOptions, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

/** A little more than a stop reserves for freeing claims and closing. */
const SHORT_GRACE_MS = 1_050;

let service: TestService;
let mx: TestMx;

afterEach(async () => {
  await service.app.stop(SHORT_GRACE_MS);
  await service.stop();
  mx.stop();
});

/** Sends a message to a peer, and stops once the peer has received that many commands. Returns the id. */
async function stopIn(options: MxOptions, commands: number): Promise<string> {
  mx = startMx(options);
  service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port) });
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "in.test", type: "A", data: mx.ip });
  const sent = await service.call("POST", "/v1/emails", {
    from: { email: "a@sender.test" },
    to: [{ email: "b@in.test" }],
    subject: "Hi",
    text: "x",
  });
  await mx.connections.reached(1);
  await mx.commands.reached(commands);
  await service.app.stop(SHORT_GRACE_MS);
  return sent.body.id;
}

test.each([
  ["EHLO", { answers: { EHLO: ["silent", "250 mx.test"] } }, 1],
  ["RCPT", { extensions: [], answers: { RCPT: ["silent", "250 ok"] } }, 3],
] as const)(
  "a message that a stop interrupts at %s is sent right after the next start",
  async (_, options, commands) => {
    const id = await stopIn(structuredClone(options) as unknown as MxOptions, commands);
    await service.restart();
    const record = await service.message(id, "delivered");
    const types = record.events.map(({ type }: { type: string }) => type);
    expect(types).toEqual(["accepted", "queued", "sending", "sending", "delivery"]);
  },
);

test("a message that the peer may have accepted waits for its next try", async () => {
  const id = await stopIn({ answers: { ".": "silent" } }, 5);
  await service.restart();
  const record = await service.message(id, "delivery_delayed");
  expect(record.recipients).toMatchObject([{ attempts: 1, diagnostic: "shutting down" }]);
});
