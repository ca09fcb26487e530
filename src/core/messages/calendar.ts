import { type Static, Type } from "@sinclair/typebox";
import type { Issue } from "../errors.ts";

export const CALENDAR_METHODS = ["REQUEST", "CANCEL", "PUBLISH", "REPLY"] as const;
/** Maximum characters of a calendar object. An event with a thousand attendees has half of that. */
export const MAX_CALENDAR_CHARS = 256 * 1024;
/** Octets of a line, without its line end (RFC 5545 §3.1). */
const MAX_LINE_OCTETS = 75;
/** The name that Outlook and Apple open as an invitation. */
const FILENAME = "invite.ics";

/** An invitation of a send item. */
export const Calendar = Type.Object(
  {
    method: Type.Union(
      CALENDAR_METHODS.map((method) => Type.Literal(method)),
      { description: "The same as METHOD in the content.", examples: ["REQUEST"] },
    ),
    content: Type.String({
      minLength: 1,
      maxLength: MAX_CALENDAR_CHARS,
      description: "An iCalendar object (RFC 5545). Its lines are folded again, and end in CRLF.",
      examples: ["BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n"],
    }),
  },
  {
    title: "SendCalendar",
    description:
      "An invitation, an answer to one, or its cancellation (RFC 5546). It becomes the last alternative of the body and the file `invite.ics`.",
  },
);
export type Calendar = Static<typeof Calendar>;

/** Returns why a calendar object cannot be sent. */
export function calendarIssues({ method, content = "" }: Partial<Calendar>): Issue[] {
  const param = "calendar.content";
  const code = "invalid_attachment";
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(content))
    return [{ param, code, message: "must not contain control characters." }];
  const lines = calendarLines(content);
  const isWhole = isLine(lines[0], "BEGIN:VCALENDAR") && isLine(lines.at(-1), "END:VCALENDAR");
  if (!isWhole)
    return [{ param, code, message: "must begin with BEGIN:VCALENDAR and end with END:VCALENDAR." }];
  const named = propertiesOf(lines).filter(({ within, name }) => within === "VCALENDAR" && name === "METHOD");
  const isNamed = named.length === 1 && named[0]?.line.toUpperCase() === `METHOD:${method}`;
  return isNamed || method === undefined
    ? []
    : [{ param, code, message: `must have one line METHOD:${method}, as "calendar.method" says.` }];
}

/** Something for which a calendar program ignores an invitation. */
export interface CalendarFault {
  code: string;
  message: string;
  fix: string;
}

const ENTRIES: ReadonlySet<string> = new Set(["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"]);

/** Properties that every calendar object and every entry must have (RFC 5545 §3.6, RFC 5546 §3.2). */
const REQUIRED: Readonly<Record<"calendar" | "entry", readonly string[]>> = {
  calendar: ["VERSION", "PRODID"],
  entry: ["UID", "DTSTAMP"],
};

/** The addresses of a message's From and recipients. */
export interface Envelope {
  from: string;
  to: readonly string[];
}

/** Returns what keeps calendar programs from showing an invitation that can be sent. */
export function calendarFaults({ method, content }: Calendar, envelope: Envelope): CalendarFault[] {
  const properties = propertiesOf(calendarLines(content));
  const entry = properties.filter(({ within }) => ENTRIES.has(within));
  const begins = method === "REQUEST" && entry.some(({ within }) => within === "VEVENT") ? ["DTSTART"] : [];
  return [
    ...missingIn(
      "calendar",
      properties.filter(({ within }) => within === "VCALENDAR"),
      REQUIRED.calendar,
    ),
    ...missingIn("entry", entry, [...REQUIRED.entry, ...begins]),
    ...zoneFaults(properties),
    ...peopleFaults(method, entry, envelope),
  ];
}

function missingIn(
  where: string,
  properties: readonly Property[],
  required: readonly string[],
): CalendarFault[] {
  return required
    .filter((wanted) => !properties.some(({ name }) => name === wanted))
    .map((name) => ({
      code: `calendar_${name.toLowerCase()}`,
      message: `The ${where === "entry" ? "calendar entry" : where} has no ${name}, so programs ignore it or cannot change it later.`,
      fix: `Add the line ${name} to the ${where} (RFC 5545).`,
    }));
}

/** A zone whose name begins with a slash is known to all programs (RFC 5545 §3.2.19). */
function zoneFaults(properties: readonly Property[]): CalendarFault[] {
  const defined = new Set(
    properties.flatMap(({ within, line }) =>
      within === "VTIMEZONE" ? [/^tzid[^:]*:(.*)/i.exec(line)?.[1]] : [],
    ),
  );
  const used = properties.flatMap(({ line }) => /^[^:]*;tzid="?([^;:"]+)/i.exec(line)?.[1] ?? []);
  return [...new Set(used)]
    .filter((zone) => !zone.startsWith("/") && !defined.has(zone))
    .slice(0, 1)
    .map((zone) => ({
      code: "calendar_timezone",
      message: `The time zone ${zone} is not defined. Outlook then refuses the invitation or shows another time.`,
      fix: `Add the VTIMEZONE of ${zone}, or give times in UTC.`,
    }));
}

function peopleFaults(
  method: Calendar["method"],
  entry: readonly Property[],
  { from, to }: Envelope,
): CalendarFault[] {
  const role = method === "REPLY" ? "ATTENDEE" : "ORGANIZER";
  const [people, invited] = [addressesOf(entry, role), addressesOf(entry, "ATTENDEE")];
  const isSender = people.includes(from.toLowerCase()) || (method === "PUBLISH" && people.length === 0);
  const asks = method !== "REQUEST" || to.some((address) => invited.includes(address.toLowerCase()));
  return [
    ...(isSender
      ? []
      : [
          {
            code: `calendar_${role.toLowerCase()}`,
            message: `The calendar entry's ${role} is not ${from}, the sender. Gmail and Outlook then show no buttons.`,
            fix: `Add ${role}:mailto:${from}, or send from the address that the entry names.`,
          },
        ]),
    ...(asks
      ? []
      : [
          {
            code: "calendar_invited",
            message: "The calendar entry has no ATTENDEE that is a recipient. Programs then show no buttons.",
            fix: "Add ATTENDEE;RSVP=TRUE:mailto: with the address of each person who is invited.",
          },
        ]),
  ];
}

function addressesOf(entry: readonly Property[], role: string): (string | undefined)[] {
  return entry
    .filter(({ name }) => name === role)
    .map(({ line }) => /mailto:([^\s"]+)$/i.exec(line)?.[1]?.toLowerCase());
}

interface Property {
  /** The innermost component. */
  within: string;
  /** In upper case. */
  name: string;
  line: string;
}

/** Returns the properties of a calendar object, each with its component. */
function propertiesOf(lines: readonly string[]): Property[] {
  const open: string[] = [];
  const found: Property[] = [];
  for (const line of lines) {
    const begun = /^begin:(.*)/i.exec(line)?.[1];
    const name = /^[a-z0-9-]*/i.exec(line)?.[0].toUpperCase() ?? "";
    if (begun !== undefined) open.push(begun.trim().toUpperCase());
    else if (name === "END") open.pop();
    else found.push({ within: open.at(-1) ?? "", name, line });
  }
  return found;
}

/** Returns the lines of a calendar object, unfolded and without empty ones. */
export function calendarLines(content: string): string[] {
  const unfolded = content.replace(/\r\n?/g, "\n").replace(/\n[ \t]/g, "");
  return unfolded.split("\n").flatMap((line) => (line.trim() === "" ? [] : line.trimEnd()));
}

function isLine(line: string | undefined, expected: string): boolean {
  return line?.toUpperCase() === expected;
}

/** Returns the octets of a calendar object as they leave: folded lines, each with CRLF. */
export function calendarBytes(content: string): Buffer {
  return Buffer.from(calendarLines(content).map(folded).join(""));
}

/** Returns a line with its line end, folded between characters (RFC 5545 §3.1). */
function folded(line: string): string {
  const pieces: string[] = [];
  let piece = "";
  let octets = 0;
  for (const char of line) {
    const more = Buffer.byteLength(char);
    if (octets + more > MAX_LINE_OCTETS) {
      pieces.push(piece);
      [piece, octets] = [" ", 1];
    }
    piece += char;
    octets += more;
  }
  return `${[...pieces, piece].join("\r\n")}\r\n`;
}

const INVITATION_TYPE = new RegExp(
  `^text/calendar; charset=utf-8; method=(?:${CALENDAR_METHODS.join("|")})$`,
);

/** Returns the file by which a message keeps its invitation. The content is in base64. */
export function invitationFile({ method, content }: Calendar) {
  return {
    filename: FILENAME,
    contentType: `text/calendar; charset=utf-8; method=${method}`,
    content: calendarBytes(content).toString("base64"),
  };
}

/** Returns true for the file that is an invitation. */
export function isInvitation({ filename, contentType }: { filename: string; contentType: string }): boolean {
  return filename === FILENAME && INVITATION_TYPE.test(contentType);
}
