import { afterAll, beforeAll, expect, test } from "bun:test";
import { deliveredRecord } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const HOST = "email-smtp.eu-west-1.amazonaws.com";
const [FIRST, SECOND] = ["a", "b"].map(
  (digit) => `0102018f5e6a7b3${digit}-1a2b3c4d-5e6f-4a1b-8c2d-9e0f1a2b3c4d-000000`,
);
const BOX = "help@in.test";

let service: TestService;
let relay: TestMx;

beforeAll(async () => {
  relay = startMx({ answers: { ".": [`250 Ok ${FIRST}`, `250 Ok ${SECOND}`] } });
  service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://${HOST}:${relay.port}`,
  });
  service.dns.add({ name: HOST, type: "A", data: "127.0.0.1" });
  await receivingInboxes(service, "in.test", [BOX]);
});
afterAll(async () => {
  await service.stop();
  relay.stop();
});

test("an answer to a Message-ID that SES made up joins the thread, whichever recipient writes it", async () => {
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: BOX },
    to: [{ email: "ada@client.test" }, { email: "bob@client.test" }],
    subject: "Offer",
    text: "Our offer",
  });
  const record = async () => (await service.call("GET", `/v1/emails/${body.id}`)).body;
  await until(async () =>
    (await record()).recipients.every(({ status }: { status: string }) => status === "sent"),
  );
  const { threadId } = await record();
  for (const id of [FIRST, SECOND]) {
    const headers = [`In-Reply-To: <${id}@eu-west-1.amazonses.com>`];
    expect((await deliveredRecord(service, { to: BOX, headers })).threadId).toBe(threadId);
  }
  const headers = [`In-Reply-To: <${FIRST}@us-west-2.amazonses.com>`];
  expect((await deliveredRecord(service, { to: BOX, headers })).threadId).not.toBe(threadId);
});
