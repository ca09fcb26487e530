import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startService, type TestService, receivingInboxes } from "../support/service.ts";

setDefaultTimeout(60_000);

let service: TestService;
beforeAll(async () => {
  service = await startService({ CAPTURE_STRICT: "0" });
});
afterAll(() => service.stop());

const invitation = (method: string, person: string): string =>
  `BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:${method}\nBEGIN:VEVENT\nUID:1\nDTSTAMP:20260101T000000Z\n${person}\nEND:VEVENT\nEND:VCALENDAR\n`;
const REQUEST = { method: "REQUEST", content: invitation("REQUEST", "ORGANIZER:mailto:shop@one.test") };
const item = {
  from: { email: "shop@one.test" },
  to: [{ email: "ben@home.example" }],
  subject: "Lunch",
  text: "Lunch?",
  calendar: REQUEST,
};

/** Returns the message as it was sent, unfolded. */
async function sentRaw(id: string): Promise<string> {
  await service.message(id, "delivered");
  const response = await fetch(`${service.url}/v1/emails/${id}/raw`, {
    headers: { authorization: `Bearer ${service.projectKey}` },
  });
  return (await response.text()).replace(/\r\n[ \t]/g, " ");
}

test("an invitation leaves as an alternative with its method, and its record has the file", async () => {
  const { status, body } = await service.call("POST", "/v1/emails", item);
  expect(status).toBe(202);
  const raw = await sentRaw(body.id);
  expect(raw).toMatch(/^Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r$/m);
  expect(raw).toMatch(/^Content-Type: application\/ics; name="?invite\.ics"?\r$/m);
  const { attachments } = (await service.call("GET", `/v1/emails/${body.id}`)).body;
  expect(attachments).toMatchObject([
    { filename: "invite.ics", contentType: "text/calendar; charset=utf-8; method=REQUEST" },
  ]);
});

test("a reply carries an answer to an invitation", async () => {
  const [inboxId = ""] = await receivingInboxes(service, "in.test", ["desk@in.test"]);
  await service.call("POST", "/v1/inbound/simulate", {
    inboxId,
    from: { email: "ben@home.example" },
    subject: "Lunch",
    text: "Lunch?",
  });
  const [thread] = (await service.call("GET", "/v1/threads")).body.data;
  const calendar = {
    method: "REPLY",
    content: invitation("REPLY", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:desk@in.test"),
  };
  const { status, body } = await service.call("POST", `/v1/threads/${thread.id}/reply`, {
    text: "Yes",
    calendar,
  });
  expect(status).toBe(202);
  expect(await sentRaw(body.id)).toMatch(/^Content-Type: text\/calendar; charset=utf-8; method=REPLY\r$/m);
});

test("an invitation whose method is not that of its content is refused", async () => {
  const calendar = { ...REQUEST, method: "CANCEL" };
  const { status, body } = await service.call("POST", "/v1/emails", { ...item, calendar });
  expect([status, body.error.param, body.error.code]).toEqual([
    422,
    "calendar.content",
    "invalid_attachment",
  ]);
});

test("a check finds an organizer that is not the sender", async () => {
  const calendar = { ...REQUEST, content: invitation("REQUEST", "ORGANIZER:mailto:ben@home.example") };
  const { body } = await service.call("POST", "/v1/emails/check", { ...item, calendar });
  expect(body.findings.map(({ code }: { code: string }) => code)).toContain("calendar_organizer");
});
