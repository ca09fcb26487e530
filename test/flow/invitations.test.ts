import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { MAX_CALENDAR_CHARS } from "../../src/core/messages/calendar.ts";
import { MAX_ATTENDEES } from "../../src/core/messages/invitation.ts";
import { MAX_FAULTY_LINES } from "../../src/mail/reading/invitation.ts";
import { deliveredRecord } from "../support/mail-in.ts";
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

describe("a received invitation", () => {
  const EVENT = [
    "UID:7f3a@calendar.example",
    "DTSTAMP:20261129T080000Z",
    "SEQUENCE:2",
    'DTSTART;TZID="Example/Zone":20261201T120000',
    'DTEND;TZID="Example/Zone":20261201T130000',
    "SUMMARY:Lunch\\, or tea",
    "LOCATION:Room 4",
    'ORGANIZER;CN="Ben, Ltd":MAILTO:ben@home.example',
    "ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:Guest+lunch@guests.test",
    "ATTENDEE;PARTSTAT=ACCEPTED:mailto:cat@home.example",
  ];
  const ZONE = "BEGIN:VTIMEZONE\r\nTZID:Example/Zone\r\nEND:VTIMEZONE";
  const ics = (method: string, event = EVENT) =>
    `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:${method}\r\n${ZONE}\r\nBEGIN:VEVENT\r\n${event.join("\r\n")}\r\nEND:VEVENT\r\nEND:VCALENDAR`;
  const letter = (calendar: string) => ({
    to: "guest+lunch@guests.test",
    headers: ["From: Ben <robot@calendar.example>", 'Content-Type: multipart/alternative; boundary="b"'],
    body: `--b\r\n\r\nLunch?\r\n--b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n${calendar}\r\n--b--`,
  });
  const arrived = (calendar: string) => deliveredRecord(service, letter(calendar));
  const answer = (threadId: string, body: Record<string, unknown>) =>
    service.call("POST", `/v1/threads/${threadId}/reply`, body);

  beforeAll(() => receivingInboxes(service, "guests.test", ["guest@guests.test"]));

  test("is read from the alternative of the body, with the times as they were written", async () => {
    expect((await arrived(ics("REQUEST"))).invitation).toEqual({
      method: "REQUEST",
      uid: "7f3a@calendar.example",
      summary: "Lunch, or tea",
      location: "Room 4",
      start: "2026-12-01T12:00:00",
      end: "2026-12-01T13:00:00",
      timeZone: "Example/Zone",
      recurring: false,
      organizer: "ben@home.example",
      attendees: [
        { email: "Guest+lunch@guests.test", answer: "needs-action" },
        { email: "cat@home.example", answer: "accepted" },
      ],
    });
  });

  const written = { summary: "Lunch, or tea", organizer: "ben@home.example", start: "2026-12-01T12:00:00" };
  const cafe = ics("REQUEST").replace("LOCATION:Room 4", "LOCATION:Caf\u00e9");
  const FORMS: readonly [name: string, calendar: string, read: Record<string, unknown>][] = [
    [
      "a faulty line",
      ics("REQUEST", ["X-RADIUS=4", "ATTENDEE;RSVP:mailto:x@home.example", ...EVENT]),
      written,
    ],
    [
      "a rule of recurrence that cannot be read",
      ics("REQUEST", ["RRULE:FREQ=WEEKLY;BYDAY= TU", ...EVENT]),
      { ...written, recurring: true },
    ],
    ["lines of a mailing list after it", `${ics("REQUEST")}\r\n____\r\nlist mailing list`, written],
    [
      "a date that is not marked as one",
      ics("REQUEST", ["DTSTART:20261201", ...EVENT.filter((line) => !line.startsWith("DTSTART"))]),
      { ...written, start: "2026-12-01", timeZone: null },
    ],
    ["a byte order mark", `\ufeff${cafe}`, { ...written, location: "Caf\u00e9" }],
  ];
  test.each(FORMS)("with %s is read", async (_, calendar, read) => {
    const { threadId, invitation } = await arrived(calendar);
    expect(invitation).toMatchObject(read);
    expect((await answer(threadId, { invitation: "accepted" })).status).toBe(202);
  });

  test("in windows-1252 or UTF-16 is read, whatever its charset is called", async () => {
    const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(cafe, "utf16le")]);
    for (const octets of [Buffer.from(cafe, "latin1"), utf16]) {
      const encoded = octets.toString("base64").replace(/.{76}/g, "$&\r\n");
      const body = `--b\r\nContent-Type: text/calendar; method=REQUEST\r\nContent-Transfer-Encoding: base64\r\n\r\n${encoded}\r\n--b--`;
      const { invitation } = await deliveredRecord(service, { ...letter(""), body });
      expect(invitation).toMatchObject({ ...written, location: "Caf\u00e9" });
    }
  });

  test.each(["application/ics", 'application/octet-stream; name="Invite.ICS"', "text/x-vcalendar"])(
    "is read from a file of the type %s if it has none of its own",
    async (type) => {
      const other = `--b\r\nContent-Type: ${type}\r\n\r\n${ics("CANCEL")}\r\n`;
      const file = { ...letter(""), body: `--b\r\n\r\nLunch?\r\n${other}--b--` };
      expect((await deliveredRecord(service, file)).invitation).toMatchObject({ method: "CANCEL" });
      const both = {
        ...letter(""),
        body: letter(ics("REQUEST")).body.replace("--b\r\n\r\nL", `${other}--b\r\n\r\nL`),
      };
      expect((await deliveredRecord(service, both)).invitation).toMatchObject({ method: "REQUEST" });
    },
  );

  test(`is read with ${MAX_FAULTY_LINES} faulty lines and not with one more`, async () => {
    const faulty = Array.from({ length: MAX_FAULTY_LINES }, () => "X");
    expect((await arrived(ics("REQUEST", [...faulty, ...EVENT]))).invitation).toMatchObject(written);
    expect((await arrived(ics("REQUEST", ["X", ...faulty, ...EVENT]))).invitation).toBeNull();
  });

  test("is answered to its organizer under the address that was invited, and can be read as an answer", async () => {
    const { threadId } = await arrived(ics("REQUEST"));
    const { status, body } = await answer(threadId, { invitation: "tentative" });
    expect(status).toBe(202);
    const sent = (await service.call("GET", `/v1/emails/${body.id}`)).body;
    expect(sent).toMatchObject({ to: ["ben@home.example"], text: "Tentatively accepted: Lunch, or tea" });
    const file = `/v1/emails/${body.id}/attachments/${sent.attachments[0].id}`;
    const reply = await (
      await fetch(service.url + file, { headers: { authorization: `Bearer ${service.projectKey}` } })
    ).text();
    expect(reply.replace(/\r\n[ \t]/g, "").split("\r\n")).toEqual(
      expect.arrayContaining([
        "METHOD:REPLY",
        "UID:7f3a@calendar.example",
        "SEQUENCE:2",
        "TZID:Example/Zone",
        "ATTENDEE;PARTSTAT=TENTATIVE:mailto:Guest+lunch@guests.test",
      ]),
    );
    expect(reply).not.toContain("cat@home.example");
    const returned = { ...letter(reply), to: "guest@guests.test" };
    expect((await deliveredRecord(service, returned)).invitation).toMatchObject({
      method: "REPLY",
      uid: "7f3a@calendar.example",
      attendees: [{ email: "Guest+lunch@guests.test", answer: "tentative" }],
    });
  });

  test.each([
    ["a cancellation", ics("CANCEL")],
    [
      "one without an organizer",
      ics(
        "REQUEST",
        EVENT.filter((line) => !line.startsWith("ORGANIZER")),
      ),
    ],
    ["something else than a calendar", "hello"],
    ["a calendar object that is cut", ics("REQUEST").slice(0, 120)],
  ])("that is %s gets no answer, and says so", async (_, calendar) => {
    const { threadId } = await arrived(calendar);
    const { status, body } = await answer(threadId, { invitation: "accepted" });
    expect([status, body.error.code]).toEqual([409, "invalid_state"]);
  });

  test("is answered by `invitation` or by a calendar object, not by both", async () => {
    const { threadId } = await arrived(ics("REQUEST"));
    const { status, body } = await answer(threadId, { invitation: "accepted", calendar: REQUEST });
    expect([status, body.error.param]).toEqual([422, "calendar"]);
  });

  test(`names ${MAX_ATTENDEES} attendees and no more, and is not read past ${MAX_CALENDAR_CHARS} octets`, async () => {
    const many = Array.from({ length: MAX_ATTENDEES + 1 }, (_, at) => `ATTENDEE:mailto:a${at}@home.example`);
    const { invitation } = await arrived(ics("REQUEST", [...EVENT, ...many]));
    expect(invitation.attendees).toHaveLength(MAX_ATTENDEES);
    const long = `COMMENT:${"x".repeat(900)}`;
    const most = Math.ceil(MAX_CALENDAR_CHARS / long.length);
    expect((await arrived(ics("REQUEST", [...EVENT, ...Array(most).fill(long)]))).invitation).toBeNull();
  });
});
