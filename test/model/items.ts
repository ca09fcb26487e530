import type { Chance } from "../support/chance.ts";
import { ADDRESSES, SIMULATED, simulated } from "./addresses.ts";
import { shownTime } from "./agree.ts";
import { some, subset } from "./choice.ts";
import { sendingDomain } from "./domains.ts";
import { SERVICE_DOMAIN } from "./stage.ts";
import { DAY_MS, type Project, type World } from "./state.ts";
import { TEMPLATE_DATA } from "./templates.ts";

export interface Mailbox {
  email: string;
}

/** A send item as the model makes it. */
export interface Item {
  from?: Mailbox;
  to?: Mailbox[];
  cc?: Mailbox[];
  bcc?: Mailbox[];
  subject?: string;
  html?: string;
  text?: string;
  templateId?: string;
  data?: object;
  tags?: { name: string; value: string }[];
  headers?: Record<string, string>;
  attachments?: object[];
  scheduledAt?: string;
  unsubscribeLink?: boolean;
}

/** The faults of an item, as a single send or a batch reports them. */
export interface Fault {
  status: number;
  code?: string;
  param?: string;
}

export interface Draft {
  item: Item;
  fault: Fault | null;
}

const SUBJECTS = ["Hello there", "50%_off Größe", "Invoice 7", "ok", "Привет Мир"] as const;

/** Faults of an item, each alone, with their errors. */
const FAULTS: readonly [(item: Item) => Item, Fault][] = [
  [({ from: _, ...item }) => item, { status: 422 }],
  [({ to: _, ...item }) => item, { status: 422, code: "missing_field", param: "to" }],
  [
    (item) => ({ ...item, to: [{ email: "nobody" }] }),
    { status: 422, code: "invalid_email", param: "to[0].email" },
  ],
  [(item) => ({ ...item, headers: { Received: "x" } }), { status: 422, code: "invalid_header" }],
  [(item) => ({ ...item, headers: { "X-Own": "a\r\nBcc: b" } }), { status: 422, code: "invalid_header" }],
  [(item) => ({ ...item, subject: "a\nb" }), { status: 422, param: "subject" }],
  [
    (item) => ({ ...item, templateId: "tpl_none" }),
    { status: 422, code: "template_not_found", param: "templateId" },
  ],
  [(item) => ({ ...item, tags: [{ name: "a b", value: "c" }] }), { status: 422 }],
  [
    (item) => ({ ...item, attachments: [{ filename: "a.txt", content: "%%%" }] }),
    { status: 422, code: "invalid_attachment" },
  ],
  [
    (item) => ({ ...item, cc: Array.from({ length: 50 }, (_, n) => ({ email: `n${n}@ok.example` })) }),
    { status: 422, code: "too_many_recipients" },
  ],
  [
    (item) => ({ ...item, from: { email: "a@never-registered.example.org" } }),
    { status: 403, code: "domain_not_verified" },
  ],
];
const TOO_LATE: Fault = { status: 422, code: "schedule_out_of_range", param: "scheduledAt" };
const STRANGE: Fault = { status: 403, code: "test_mode_recipient" };

/** A valid item, or one with a single fault. If a project may not send at all, it gets only valid ones. */
export function draftOf(world: World, chance: Chance, project: Project, mayBeWrong: boolean): Draft {
  const item = itemOf(world, chance, project);
  if (!mayBeWrong || !chance.happens(0.2)) return { item, fault: null };
  const kind = chance.below(FAULTS.length + 2);
  const fault = FAULTS[kind];
  if (fault !== undefined) return { item: fault[0](item), fault: fault[1] };
  if (kind === FAULTS.length)
    return {
      item: { ...item, scheduledAt: shownTime(world.stage.clock.now() + 31 * DAY_MS) },
      fault: TOO_LATE,
    };
  const onboarding = { ...item, from: onboardingFrom(), to: [{ email: "ada@ok.example" }] };
  return { item: onboarding, fault: STRANGE };
}

function onboardingFrom(): Mailbox {
  return { email: `test@onboarding.${SERVICE_DOMAIN}` };
}

function itemOf(world: World, chance: Chance, project: Project): Item {
  const domain = sendingDomain(chance, project);
  const inbox = some(
    chance,
    project.inboxes.filter((one) => one.domain.status === "verified"),
  );
  const own = domain === undefined ? undefined : { email: `news@${domain.name}` };
  const asInbox = inbox !== undefined && chance.happens(0.4) ? { email: inbox.address } : undefined;
  const from = asInbox ?? own ?? onboardingFrom();
  const testMode = asInbox === undefined && own === undefined;
  const people = testMode ? [project.account.owner] : ADDRESSES;
  // Addresses that are or were suppressed get mail more often, because faults are likelier there.
  const blocked = some(
    chance,
    project.suppressions.map(({ email }) => email),
  );
  const reachable = blocked !== undefined && (!testMode || blocked === simulated("delivered"));
  const all =
    reachable && chance.happens(0.4)
      ? [blocked]
      : [...subset(chance, people, 0.2), ...subset(chance, SIMULATED.map(simulated), 0.2)];
  const addresses = all.length === 0 ? [simulated("delivered")] : all;
  const template = chance.happens(0.25) ? some(chance, project.templates) : undefined;
  const now = world.stage.clock.now();
  const scheduledAt = chance.pick([0, 0, 0, 0, -3_600_000, 30_000, 3_600_000, 2 * DAY_MS]);
  return {
    from,
    ...placed(chance, addresses),
    ...(template === undefined
      ? { subject: chance.pick(SUBJECTS), ...bodyOf(chance) }
      : { templateId: chance.pick([template.id, template.slug]), data: TEMPLATE_DATA }),
    ...(chance.happens(0.3) ? { tags: [{ name: "kind", value: chance.pick(["news", "bill"]) }] } : {}),
    ...(chance.happens(0.2) ? { headers: { "X-Own": "value" } } : {}),
    ...(chance.happens(0.1) ? { attachments: [{ filename: "a.txt", content: "aGVsbG8=" }] } : {}),
    ...(scheduledAt === 0 ? {} : { scheduledAt: shownTime(now + scheduledAt) }),
    ...(chance.happens(0.2) ? { unsubscribeLink: true } : {}),
  };
}

function bodyOf(chance: Chance): Pick<Item, "html" | "text"> {
  const html = '<p>Hello <a href="https://shop.example/a?b=1&amp;c=2">shop</a></p>';
  const bodies: readonly [Pick<Item, "html" | "text">, ...Pick<Item, "html" | "text">[]] = [
    { text: "Hello" },
    { html },
    { html, text: "Hello" },
  ];
  return chance.pick(bodies);
}

function placed(chance: Chance, addresses: readonly string[]): Pick<Item, "to" | "cc" | "bcc"> {
  const [first, ...others] = addresses.map((email) => ({ email }));
  const places: Required<Pick<Item, "to" | "cc" | "bcc">> = {
    to: first === undefined ? [] : [first],
    cc: [],
    bcc: [],
  };
  for (const other of others) chance.pick([places.to, places.to, places.cc, places.bcc]).push(other);
  const { to, cc, bcc } = places;
  return { to, ...(cc.length > 0 ? { cc } : {}), ...(bcc.length > 0 ? { bcc } : {}) };
}
