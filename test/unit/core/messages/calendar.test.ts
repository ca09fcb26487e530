import { describe, expect, test } from "bun:test";
import PostalMime from "postal-mime";
import {
  type Calendar,
  calendarBytes,
  calendarFaults,
  calendarIssues,
  invitationFile,
} from "../../../../src/core/messages/calendar.ts";
import { compose } from "../../../../src/mail/composing/compose.ts";

const FROM = "ana@shop.example";
const event = (lines: readonly string[], method = "REQUEST"): string =>
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Shop//Shop//EN",
    `METHOD:${method}`,
    "BEGIN:VEVENT",
    ...lines,
    "END:VEVENT",
    "END:VCALENDAR",
  ].join("\n");
const TO = { from: FROM, to: ["cat@home.example", "Ben@home.example"] };
const START = ["DTSTART:20260201T120000Z", "ATTENDEE;RSVP=TRUE:mailto:ben@home.example"];
const WHOLE = ["UID:1@shop.example", "DTSTAMP:20260101T000000Z", `ORGANIZER;CN="Ana: x":mailto:${FROM}`];

describe("a calendar object", () => {
  const REFUSED: readonly [name: string, calendar: Calendar, says: string][] = [
    ["another method", { method: "CANCEL", content: event(WHOLE) }, "METHOD:CANCEL"],
    [
      "two methods",
      { method: "REQUEST", content: event(WHOLE).replace("BEGIN:VEVENT", "METHOD:REPLY\nBEGIN:VEVENT") },
      "one line",
    ],
    [
      "the method within the event alone",
      { method: "REQUEST", content: event(["METHOD:REQUEST"], "x") },
      "one line",
    ],
    ["no beginning", { method: "REQUEST", content: "METHOD:REQUEST\nEND:VCALENDAR" }, "begin with"],
    ["a NUL", { method: "REQUEST", content: event(["SUMMARY:a\0b"]) }, "control characters"],
  ];
  test.each(REFUSED)("with %s is refused", (_name, calendar, says) => {
    expect(calendarIssues(calendar)).toMatchObject([
      { param: "calendar.content", message: expect.stringContaining(says) },
    ]);
  });

  test("with its method is accepted, whatever its line ends", () => {
    for (const end of ["\n", "\r\n", "\r"])
      expect(calendarIssues({ method: "REQUEST", content: event(WHOLE).replaceAll("\n", end) })).toEqual([]);
  });

  const zoned = (zone: string) => [
    "DTSTART;TZID=Europe/Berlin:20260201T120000",
    START[1] ?? "",
    ...WHOLE,
    zone,
  ];
  const FAULTS: readonly [name: string, lines: readonly string[], codes: readonly string[]][] = [
    ["nothing amiss", [...WHOLE, ...START], []],
    [
      "another organizer",
      [...WHOLE.slice(0, 2), "ORGANIZER:mailto:ben@shop.example", ...START],
      ["calendar_organizer"],
    ],
    [
      "an organizer that only begins alike",
      [...WHOLE.slice(0, 2), `ORGANIZER:mailto:${FROM}.evil`, ...START],
      ["calendar_organizer"],
    ],
    ["no organizer", [...WHOLE.slice(0, 2), ...START], ["calendar_organizer"]],
    ["no UID", [...WHOLE.slice(1), ...START], ["calendar_uid"]],
    ["no DTSTAMP", [WHOLE[0] ?? "", WHOLE[2] ?? "", ...START], ["calendar_dtstamp"]],
    ["no DTSTART", [...WHOLE, START[1] ?? ""], ["calendar_dtstart"]],
    [
      "a UID in its alarm alone",
      ["BEGIN:VALARM", ...WHOLE.slice(0, 1), "END:VALARM", ...WHOLE.slice(1), ...START],
      ["calendar_uid"],
    ],
    ["a folded organizer", [...WHOLE.slice(0, 2), "ORGANIZER:mailto:ana@shop\n .example", ...START], []],
    ["nobody invited", [...WHOLE, START[0] ?? ""], ["calendar_invited"]],
    [
      "somebody else invited",
      [...WHOLE, START[0] ?? "", "ATTENDEE:mailto:ben@home.example.evil"],
      ["calendar_invited"],
    ],
    ["a time zone that is not defined", zoned("SUMMARY:x"), ["calendar_timezone"]],
    [
      "its time zone",
      zoned("END:VEVENT\nBEGIN:VTIMEZONE\nTZID:Europe/Berlin\nEND:VTIMEZONE\nBEGIN:VEVENT"),
      [],
    ],
    [
      "a time zone that all programs know",
      zoned("SUMMARY:x").map((line) => line.replace("TZID=", "TZID=/")),
      [],
    ],
  ];
  test.each(FAULTS)("of a request with %s has these faults", (_name, lines, codes) => {
    expect(calendarFaults({ method: "REQUEST", content: event(lines) }, TO).map(({ code }) => code)).toEqual([
      ...codes,
    ]);
  });

  test("without its version and the program that made it has these faults", () => {
    const content = event([...WHOLE, ...START]).replace(/VERSION.*\nPRODID.*\n/, "");
    expect(calendarFaults({ method: "REQUEST", content }, TO).map(({ code }) => code)).toEqual([
      "calendar_version",
      "calendar_prodid",
    ]);
  });

  test("of a reply names the sender as attendee", () => {
    const reply = (lines: readonly string[]) =>
      calendarFaults({ method: "REPLY", content: event(lines, "REPLY") }, TO).map(({ code }) => code);
    expect(reply([...WHOLE.slice(0, 2), `ATTENDEE;PARTSTAT=ACCEPTED:mailto:${FROM}`])).toEqual([]);
    expect(reply(WHOLE)).toEqual(["calendar_attendee"]);
  });

  test("leaves in lines of at most 75 octets that end in CRLF and unfold to the same text", () => {
    const summary = `SUMMARY:${"Grüße 🎉 東京 ".repeat(60)}.`;
    const octets = calendarBytes(event([...WHOLE, summary])).toString("latin1");
    expect(octets.endsWith("\r\n")).toBe(true);
    expect(octets.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    expect(Math.max(...octets.split("\r\n").map(({ length }) => length))).toBeLessThanOrEqual(75);
    expect(Buffer.from(octets.replaceAll("\r\n ", ""), "latin1").toString()).toContain(`${summary}\r\n`);
  });
});

test("an invitation is the last alternative with its method, and the file invite.ics", async () => {
  const calendar: Calendar = { method: "REQUEST", content: event([...WHOLE, "SUMMARY:Grüße"]) };
  const { content, ...file } = invitationFile(calendar);
  const { raw } = compose({
    from: { email: FROM },
    to: [{ email: "ben@home.example" }],
    subject: "Lunch",
    text: "Lunch?",
    html: "<p>Lunch?</p>",
    messageId: "<1@shop.example>",
    date: 0,
    attachments: [{ ...file, disposition: "attachment", bytes: Buffer.from(content, "base64") }],
  });
  const types = [...raw.toString().matchAll(/^Content-Type: ([^;\r]*)/gm)].map(([, type]) => type);
  expect(types).toEqual([
    "multipart/mixed",
    "multipart/alternative",
    "text/plain",
    "text/html",
    "text/calendar",
    "application/ics",
  ]);
  const unfolded = raw.toString().replace(/\r\n[ \t]/g, " ");
  expect(unfolded).toMatch(/^Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r$/m);
  expect(unfolded).toMatch(/^Content-Disposition: attachment; filename="?invite\.ics"?\r$/m);
  const { attachments } = await PostalMime.parse(raw);
  expect(attachments.map(({ mimeType, method, filename }) => [mimeType, method, filename])).toEqual([
    ["text/calendar", "REQUEST", null],
    ["application/ics", undefined, "invite.ics"],
  ]);
  const parts = raw.toString("latin1").match(/^(?:[A-Za-z0-9+/=]{1,76}\r\n)+/gm) ?? [];
  expect(parts.map((part) => Buffer.from(part, "base64").toString())).toEqual(
    [1, 2].map(() => calendarBytes(calendar.content).toString()),
  );
});
