import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

/** How much faster than time the chores run. */
const HURRY = 10;

let service: TestService;
beforeAll(async () => {
  service = await startService({}, shiftedClock(HURRY));
  await verifiedDomain(service, "one.test");
});
afterAll(() => service.stop());

async function made(path: string, body: object = {}) {
  const answer = await service.call("POST", path, body);
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}
const read = async (id: string) => (await service.call("GET", `/v1/broadcasts/${id}`)).body;

test("a broadcast is delivered with the values of each contact and a link that leaves its topic", async () => {
  const topic = await made("/v1/topics", { name: "News" });
  await made("/v1/contacts", { email: "ana@other.example", firstName: "Ana & Co" });
  await made("/v1/contacts", { email: "ben@other.example" });
  const { id } = await made("/v1/broadcasts", {
    name: "May",
    topicId: topic.id,
    from: "News <news@one.test>",
    subject: 'Hello {{ contact.firstName | default: "you" }}',
    html: '<p>Hi {{ contact.firstName | default: "you" }}</p><a href="{{ unsubscribeUrl }}">Leave</a>',
  });
  await made(`/v1/broadcasts/${id}/send`);
  await until(async () => (await read(id)).status === "sent" && (await read(id)).counts.delivered === 2);
  const listed = (await service.call("GET", `/v1/broadcasts/${id}/recipients`)).body.data;
  const [ben, ana] = await Promise.all(
    listed.map(async (one: { id: string }) => (await service.call("GET", `/v1/emails/${one.id}`)).body),
  );
  expect(ana).toMatchObject({
    subject: "Hello Ana & Co",
    stream: "bulk",
    topicId: topic.id,
    broadcastId: id,
  });
  expect(ana.html).toContain("<p>Hi Ana &amp; Co</p>");
  expect(ben).toMatchObject({ subject: "Hello you", templateId: null });
  const { body: raw } = await service.call("GET", `/v1/emails/${ana.id}/raw`);
  const [, path = ""] = /^List-Unsubscribe:\s+<https?:\/\/[^/]+(\/u\/\w+)>/m.exec(raw) ?? [];
  expect(raw.replaceAll("=\r\n", "")).toContain(path);
  await service.call("POST", path, "List-Unsubscribe=One-Click", {
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  expect((await service.call("GET", "/v1/contacts?q=ana")).body.data[0]).toMatchObject({
    subscribed: true,
    topics: { [topic.id]: "unsubscribed" },
  });
  expect((await read(id)).counts).toMatchObject({ recipients: 2, delivered: 2, unsubscribed: 1 });
});
