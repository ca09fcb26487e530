import { afterAll, expect, test } from "bun:test";
import { LARGE_MESSAGE_LIMITS } from "../../src/flows/deliver/admission.ts";
import { startMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, verifiedDomain } from "../support/service.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/**
 * Bytes of the attachment, and number of domains whose peers accept mail and never answer: more than may be in
 * flight.
 */
const OCTETS = 12_000_000;
const HANGING = 12;

test("large messages at peers that hang delay no small one", async () => {
  const good = startMx();
  const hanging = startMx({ ip: "127.0.0.2", port: good.port, extensions: [], answers: { DATA: "silent" } });
  const service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(good.port) });
  stops.push(service.stop, hanging.stop, good.stop);
  await verifiedDomain(service, "sender.test");
  const domains = Array.from({ length: HANGING }, (_, at) => `h${at}.test`);
  for (const name of domains) service.dns.add({ name, type: "A", data: "127.0.0.2" });
  service.dns.add({ name: "good.test", type: "A", data: "127.0.0.1" });
  const send = (to: string[], more: object = {}) => service.send({ from: "a@sender.test", to, ...more });
  const content = Buffer.alloc(OCTETS, "x").toString("base64");
  await send(
    domains.map((name) => `a@${name}`),
    { attachments: [{ filename: "x.bin", contentType: "application/octet-stream", content }] },
  );
  const most = Math.floor(LARGE_MESSAGE_LIMITS.total / (OCTETS * 1.4));
  const asked = () => hanging.commands.items.filter((line) => line.startsWith("DATA")).length;
  await until(() => asked() >= most);
  await service.message(await send(["b@good.test"]), "delivered");
  // The rest wait as keys only.
  expect(asked()).toBe(most);
  expect(most).toBeLessThan(HANGING);
});
