import ICAL from "ical.js";
import { normalizeAddress } from "../../core/addresses.ts";
import { calendarLines } from "../../core/messages/calendar.ts";
import { type Invitation, type InvitationAnswer, MAX_ATTENDEES } from "../../core/messages/invitation.ts";
import { decoderFor } from "../decoding/charsets.ts";
import { storedLine } from "../text/stored-text.ts";

/** Maximum characters that are shown of a title, a place or an id. */
const MAX_SHOWN_CHARS = 1000;

/** Maximum number of faulty lines of an object that are left out. With more of them, nothing is read. */
export const MAX_FAULTY_LINES = 100;

/** A property of jCal: name, parameters, type and values (RFC 7265 §3.4). */
type Property = [name: string, parameters: Record<string, unknown>, type: string, ...values: unknown[]];
/** A component of jCal (RFC 7265 §3.3). */
type Component = [name: string, properties: Property[], components: Component[]];

/** Reads the first event of a calendar object; null if there is none that can be read. Never throws. */
export function readInvitation(bytes: Uint8Array): Invitation | null {
  const calendar = calendarIn(bytes);
  const event = calendar === null ? null : eventOf(calendar);
  if (calendar === null || event === null) return null;
  const start = property(event, "dtstart");
  return {
    method: (shownText(calendar, "method") ?? "PUBLISH").toUpperCase(),
    uid: shownText(event, "uid") ?? "",
    summary: shownText(event, "summary"),
    location: shownText(event, "location"),
    start: shownText(event, "dtstart"),
    end: shownText(event, "dtend"),
    timeZone: typeof start?.[1].tzid === "string" ? storedLine(start[1].tzid, MAX_SHOWN_CHARS) : null,
    recurring: property(event, "rrule") !== undefined,
    organizer: addressOf(property(event, "organizer")),
    attendees: event[1]
      .filter(([name]) => name === "attendee")
      .slice(0, MAX_ATTENDEES)
      .flatMap(attendeeOf),
  };
}

/** An answer to an invitation. */
export interface AnswerToGive {
  answer: InvitationAnswer;
  attendee: string;
  /** Time of the answer, milliseconds. */
  at: number;
}

/** Properties of the event by which its organizer finds it, or shows the answer (RFC 5546 §3.2.3). */
const ANSWERED = new Set(["uid", "sequence", "organizer", "recurrence-id", "dtstart", "dtend", "summary"]);

/** Makes the calendar object that answers an invitation; null if there is none that can be read. Never throws. */
export function answerInvitation(bytes: Uint8Array, { answer, attendee, at }: AnswerToGive): string | null {
  const calendar = calendarIn(bytes);
  const event = calendar === null ? null : eventOf(calendar);
  if (calendar === null || event === null) return null;
  const stamp = new Date(at).toISOString().replace(/\.\d+/, "");
  const properties: Property[] = [
    ...event[1].filter(([name]) => ANSWERED.has(name)),
    ["dtstamp", {}, "date-time", stamp],
    ["attendee", { partstat: answer.toUpperCase() }, "cal-address", `mailto:${attendee}`],
  ];
  const header: Property[] = [
    ["version", {}, "text", "2.0"],
    ["prodid", {}, "text", "-//Postrider//Postrider//EN"],
    ["method", {}, "text", "REPLY"],
  ];
  const zones = calendar[2].filter(([name]) => name === "vtimezone");
  return ICAL.stringify(["vcalendar", header, [...zones, ["vevent", properties, []]]]);
}

function calendarIn(bytes: Uint8Array): Component | null {
  const text = decoderFor(new TextDecoder(), bytes).decode(bytes);
  return calendarOf(text) ?? calendarOf(readableLines(text));
}

function calendarOf(text: string): Component | null {
  try {
    const parsed: Component | Component[] = ICAL.parse(text);
    const [calendar] = typeof parsed[0] === "string" ? [parsed as Component] : (parsed as Component[]);
    return calendar?.[0] === "vcalendar" ? calendar : null;
  } catch {
    return null;
  }
}

/** Leaves out lines that are faulty, or outside of the calendar, such as a mailing list's footer. Its event can then be read. */
function readableLines(text: string): string {
  const lines: string[] = [];
  let open = 0;
  let faulty = 0;
  for (const line of calendarLines(text)) {
    if (/^begin:/i.test(line)) open += 1;
    else if (open === 0) continue;
    else if (/^end:/i.test(line)) open -= 1;
    else if (!isReadable(line)) {
      faulty += 1;
      if (faulty > MAX_FAULTY_LINES) return "";
      // A rule of recurrence stays as text, because the event recurs.
      if (/^rrule:/i.test(line)) lines.push(line.replace(":", ";VALUE=TEXT:"));
      continue;
    }
    lines.push(line);
  }
  return lines.join("\r\n");
}

function isReadable(line: string): boolean {
  try {
    ICAL.parse.property(line);
    return true;
  } catch {
    return false;
  }
}

/** Returns the whole series if the object also changes single events of it. */
function eventOf([, , components]: Component): Component | null {
  const events = components.filter(([name]) => name === "vevent");
  const event = events.find((each) => property(each, "recurrence-id") === undefined) ?? events[0];
  if (event === undefined) return null;
  const [name, properties, inner] = event;
  return [name, properties.map(dated), inner];
}

/** Returns a date that lacks VALUE=DATE, as some programs write it, with its type. */
function dated(given: Property): Property {
  const [name, parameters, , value] = given;
  const date = typeof value === "string" ? /^(\d{4}-\d\d-\d\d)T::$/.exec(value)?.[1] : undefined;
  return date === undefined ? given : [name, parameters, "date", date];
}

function property([, properties]: Component, wanted: string): Property | undefined {
  return properties.find(([name]) => name === wanted);
}

function shownText(component: Component, wanted: string): string | null {
  const value = property(component, wanted)?.[3];
  const text = typeof value === "string" ? storedLine(value, MAX_SHOWN_CHARS) : "";
  return text === "" ? null : text;
}

function addressOf(person: Property | undefined): string | null {
  const value = person?.[3];
  return typeof value === "string" ? normalizeAddress(value.replace(/^mailto:/i, "")) : null;
}

function attendeeOf(person: Property): Invitation["attendees"] {
  const email = addressOf(person);
  const { partstat } = person[1];
  const answer = typeof partstat === "string" ? storedLine(partstat, MAX_SHOWN_CHARS) : "needs-action";
  return email === null ? [] : [{ email, answer: answer.toLowerCase() }];
}
