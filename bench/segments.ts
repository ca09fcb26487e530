/**
 * Measures the count and sample of a filter with a million contacts: `bun bench/segments.ts [--contacts=N] [--keep=FOLDER]
 * [--json=FILE]`. A person who writes a filter waits for it after each change. Times are processor time, because others may use the
 * machine.
 */
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { type Filter, readFilter } from "../src/core/audience/filter.ts";
import type { PropertyType, PropertyValue } from "../src/core/audience/properties.ts";
import { newId } from "../src/core/ids.ts";
import { DAY_MS, SECOND_MS } from "../src/core/time/units.ts";
import { MAX_VALUES_READ, passingContacts } from "../src/store/audience/filter-sets.ts";
import { insertProperty } from "../src/store/audience/properties.ts";
import { insertTopic, topicShapes } from "../src/store/audience/topics.ts";
import { type Db, openDb } from "../src/store/engine/client.ts";
import { migrate } from "../src/store/engine/migrate.ts";
import { insertContact } from "../src/store/projects/contacts.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { keptFolder, numberOption } from "./support/options.ts";
import { processorTime } from "./support/processor-time.ts";
import { accountRow, projectRow } from "./support/projects.ts";
import { median } from "./support/table.ts";

const CONTACTS = numberOption("contacts", 1_000_000);
const PER_WRITE = 500;
const SAMPLES = 5;
const SAMPLE = 10;
const PROJECT = "snd_segments";
const BEGIN = Date.UTC(2026, 0, 1);
/** The time of the questions: a contact came every ten seconds. */
const NOW = BEGIN + CONTACTS * 10 * SECOND_MS;

const SHAPES: readonly { name: string; type: PropertyType }[] = [
  { name: "plan", type: "string" },
  { name: "city", type: "string" },
  { name: "seats", type: "number" },
  { name: "vip", type: "boolean" },
  { name: "since", type: "date" },
];
const PLANS = ["free", "pro", "team", "trial"];

/** Returns a number from 0 on and less than 1, always the same for a contact and a purpose. */
function share(at: number, purpose: number): number {
  let mixed = Math.imul(at * 16 + purpose, 2_654_435_761);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 2_246_822_507);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32;
}

function propertiesOf(at: number): Record<string, PropertyValue> {
  return {
    plan: PLANS[Math.floor(share(at, 1) * PLANS.length)] ?? "",
    city: `city ${Math.floor(share(at, 2) * 2000)}`,
    seats: Math.floor(share(at, 3) * 1000),
    vip: share(at, 4) < 0.1,
    since: new Date(BEGIN - Math.floor(share(at, 5) * 2000) * DAY_MS).toISOString(),
  };
}

/** Adds the project, once, and the contacts that are missing. */
async function fill(db: Db): Promise<void> {
  const found = await db.first<{ count: number }>("SELECT COUNT(*) AS count FROM contacts");
  const had = found?.count ?? 0;
  if (had >= CONTACTS) return;
  if (had === 0) await addProject(db);
  const [topic] = await topicShapes(db, PROJECT);
  const spent = await processorTime(async () => {
    for (let at = had; at < CONTACTS; at += PER_WRITE)
      await db.write(
        Array.from({ length: PER_WRITE }, (_, nth) => insertContact(contactAt(at + nth, topic?.id ?? ""))),
      );
  });
  const each = spent / (CONTACTS - had);
  console.log(`${CONTACTS - had} contacts, ${each.toFixed(0)} µs of the processor for each`);
}

async function addProject(db: Db): Promise<void> {
  const owned = { senderId: PROJECT, createdAt: BEGIN, updatedAt: BEGIN };
  const topic = { id: newId("top", BEGIN), name: "News", description: "", defaultSubscribed: true };
  await db.write([
    accountRow(),
    projectRow("acc", PROJECT),
    ...SHAPES.flatMap((shape) =>
      insertProperty({ ...owned, ...shape, id: newId("prp", BEGIN), fallback: null }),
    ),
    ...insertTopic({ ...owned, ...topic, visible: true, doubleOptIn: false }),
  ]);
}

function contactAt(at: number, topicId: string): Parameters<typeof insertContact>[0] {
  const time = BEGIN + at * 10 * SECOND_MS;
  const email = `person${at}@d${at % 997}.example`;
  const subscribed = share(at, 6) < 0.9;
  const engaged = (purpose: number, of: number) =>
    share(at, purpose) < of ? NOW - Math.floor(share(at, purpose + 1) * 300) * DAY_MS : null;
  return {
    id: newId("con", time),
    senderId: PROJECT,
    email,
    emailKey: email,
    firstName: `First${at % 5000}`,
    lastName: null,
    subscribed,
    unsubscribedAt: subscribed ? null : time,
    metadata: {},
    properties: propertiesOf(at),
    topics: share(at, 7) < 0.1 ? { [topicId]: share(at, 8) < 0.5 ? 0 : 1 } : {},
    consent: [],
    lastSentAt: engaged(9, 0.9),
    lastOpenedAt: engaged(11, 1 / 7),
    lastClickedAt: engaged(13, 1 / 30),
    createdAt: time,
    updatedAt: time,
  };
}

/** Returns the filters to ask, by name. */
function casesWith(topic: string): readonly (readonly [name: string, filter: Filter])[] {
  const has = (property: string, op: string, value: PropertyValue): Filter => ({ property, op, value });
  const field = (name: string, op: string, value?: PropertyValue): Filter =>
    value === undefined ? { field: name, op } : { field: name, op, value };
  const subscribed = field("subscribed", "eq", true);
  const pro = has("plan", "eq", "pro");
  const many = has("seats", "gt", 500);
  const since = has("since", "gte", "2024-06-01");
  const ten = [
    subscribed,
    has("plan", "ne", "trial"),
    has("seats", "gt", 50),
    has("seats", "lt", 950),
    has("vip", "eq", false),
    has("since", "gte", "2021-01-01"),
    has("city", "ne", "city 7"),
    { topic, op: "eq", value: "subscribed" },
    field("lastSentAt", "withinDays", 250),
    field("createdAt", "olderThanDays", 1),
  ];
  return [
    ["`subscribed` is true", subscribed],
    ["a string is one of four", pro],
    ["a string that no contact has", has("plan", "eq", "none")],
    ["a string of one in 2000", has("city", "eq", "city 7")],
    ["a number is more than half", many],
    ["a date after a day", since],
    ["a part of the address", field("email", "contains", "nobody")],
    ["`createdAt` within seven days", field("createdAt", "withinDays", 7)],
    ["`lastOpenedAt` within 90 days", field("lastOpenedAt", "withinDays", 90)],
    ["`lastOpenedAt` is unset", field("lastOpenedAt", "unset")],
    ["a topic is subscribed", { topic, op: "eq", value: "subscribed" }],
    ["all of three: subscribed, a string, a number", { all: [subscribed, pro, many] }],
    [
      "all of three that most pass",
      { all: [subscribed, has("plan", "ne", "trial"), has("seats", "gt", 50)] },
    ],
    ["any of three: a string, a number, a date", { any: [pro, many, since] }],
    ["all of two, of which the second is rare", { all: [many, has("city", "eq", "city 7")] }],
    ["none of three", { not: [pro, many, since] }],
    ["all of ten that most pass", { all: ten }],
    ["any of ten", { any: ten.map((one) => ({ not: [one] })) }],
  ];
}

const path = join(keptFolder() ?? benchFolder(), `contacts-${CONTACTS}.db`);
const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
await migrate(db, BEGIN);
await fill(db);
const topics = await topicShapes(db, PROJECT);
const figures: Record<string, Record<string, number>> = {};
console.log("| filter | contacts | exact, ms | counted | ms |\n| --- | --- | --- | --- | --- |");
for (const [name, filter] of casesWith(topics[0]?.id ?? "")) {
  const condition = readFilter(filter, { shapes: SHAPES, topics, now: NOW });
  const ask = async (most?: number) => {
    const times: number[] = [];
    let count = 0;
    for (let sample = 0; sample < SAMPLES; sample++) {
      const spent = await processorTime(async () => {
        count = (await passingContacts(db, PROJECT, condition, { most, sample: SAMPLE })).count;
      });
      times.push(spent / 1000);
    }
    return { count, ms: median(times) };
  };
  const [exact, bounded] = [await ask(), await ask(MAX_VALUES_READ)];
  figures[name] = { contacts: CONTACTS, "exact, ms": exact.ms, ms: bounded.ms };
  const cells = [name, exact.count, exact.ms.toFixed(0), bounded.count, bounded.ms.toFixed(0)];
  console.log(`| ${cells.join(" | ")} |`);
}
await db.close();
handOver(figures);
