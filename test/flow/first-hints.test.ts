import { expect, test } from "bun:test";
import { startSink } from "../support/https-sink.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startService, verifiedDomain } from "../support/service.ts";

test("a send is delivered and its events are pushed at once, without the sweep", async () => {
  const [service, sink] = [await startService({ WEBHOOK_RETRY_SECONDS: "0,60" }, manualClock()), startSink()];
  await verifiedDomain(service, "sender.test");
  await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["accepted", "delivery"] });
  const id = await service.send({ from: "news@sender.test" });
  await sink.requests.reached(2);
  const pushed = sink.requests.items.map(({ body }) => JSON.parse(body));
  expect(pushed.map(({ data }) => data.messageId)).toEqual([id, id]);
  expect(pushed.map(({ type }) => type).sort()).toEqual(["accepted", "delivery"]);
  await service.stop();
  await sink.stop();
});
