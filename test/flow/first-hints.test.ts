import { expect, test } from "bun:test";
import { startSink } from "../support/https-sink.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startService, verifiedDomain } from "../support/service.ts";

test("a send is delivered and its event is pushed at once, without the sweep", async () => {
  const [service, sink] = [await startService({ WEBHOOK_RETRY_SECONDS: "0,60" }, manualClock()), startSink()];
  await verifiedDomain(service, "sender.test");
  await service.call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["accepted"] });
  const id = await service.send({ from: "news@sender.test" });
  const { body } = await sink.requests.reached(1);
  expect(JSON.parse(body)).toMatchObject({ type: "accepted", data: { messageId: id } });
  await service.message(id, "delivered");
  await service.stop();
  await sink.stop();
});
