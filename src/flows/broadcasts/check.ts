import type { AbTest } from "../../core/audience/ab-test.ts";
import { type MergedContact, mergeData, unguardedPaths, usedFields } from "../../core/audience/broadcasts.ts";
import { showsPostalAddress } from "../../core/audience/postal-address.ts";
import { AppError, invalid } from "../../core/errors.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { scanHtml } from "../../mail/text/html-scan.ts";
import type { Project } from "../../store/projects/projects.ts";
import { nextContacts } from "../../store/audience/broadcast-contacts.ts";
import { countMissing } from "../../store/audience/broadcast-missing.ts";
import { getContact } from "../../store/projects/contacts.ts";
import { RenderingFailure, refusalOf } from "../../core/templates/render.ts";
import { type Finding, warning } from "../../mail/text/findings.ts";
import { idCeiling } from "../../core/ids.ts";
import { checkSending, type SendCheck } from "../accept/check.ts";
import { leavingOctets } from "../accept/leaving-html.ts";
import type { Sending } from "../accept/sending.ts";
import { LINK_VARIABLE } from "../mime/unsubscribe.ts";
import { refusing } from "../projects/templates.ts";
import { sizeFindings, trackingFindings } from "./ab-test.ts";
import { type Acting, type Ready, readyToSend, subjectsOf } from "./ready.ts";
import { existingBroadcast } from "./save.ts";

/** The effects that a broadcast would have. */
export interface BroadcastCheck extends SendCheck {
  /** Contacts that pass the filter of its segment now. */
  contacts: number;
  /** Variables for which contacts lack a value, with how many. */
  missing: { variable: string; contacts: number }[];
}

/** Refusals of one send that do not refuse a broadcast, which waits for the next day. */
const WAITS: ReadonlySet<string | undefined> = new Set(["daily_quota_exceeded", "trust_tier_exceeded"]);

/** Checks a broadcast without sending it. @throws AppError 404 */
export async function checkBroadcast(deps: Sending, acting: Acting, id: string): Promise<BroadcastCheck> {
  const whole = await existingBroadcast(deps.db, acting.project.id, id);
  try {
    return await checkReady(deps, acting, await readyToSend(deps, acting, whole));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { error, size: 0, clipped: false, findings: [], contacts: 0, missing: [] };
  }
}

/** Checks a broadcast that has all of its parts, with the first contact that it goes to. */
export async function checkReady(deps: Sending, acting: Acting, ready: Ready): Promise<BroadcastCheck> {
  const { project, by } = acting;
  const { item, unshown } = await sampleOf(deps, ready);
  const checked = await checkSending(deps, project, by, { item, scheduledAt: null });
  const other = await checkOther(deps, acting, ready);
  const { source, segment, variables, fallbacks } = ready;
  const { subject, html, text } = source;
  const { abTest } = ready.broadcast;
  const paths = unguardedPaths(
    [subject, abTest?.subject ?? "", html ?? "", text ?? ""].join("\n"),
    variables,
    Object.keys(fallbacks),
  );
  const { contacts, missing } = await countMissing(deps.db, project.id, segment?.condition ?? null, paths);
  return {
    ...checked,
    error:
      (WAITS.has(checked.error?.details.code) ? null : checked.error) ??
      (await lackingLink(deps, ready)) ??
      lackingAddress(project, item),
    findings: [
      ...(abTest === null ? [] : testFindings(deps, project, { abTest, html: item.html ?? null, contacts })),
      ...ofBoth([...unshown.map(leftOut), ...checked.findings], other),
    ],
    contacts,
    missing: Object.entries(missing)
      .filter(([, count]) => count > 0)
      .map(([path, count]) => ({ variable: `contact.${path}`, contacts: count })),
  };
}

/** Returns the findings about the message with the other subject of a test. */
async function checkOther(deps: Sending, { project, by }: Acting, ready: Ready): Promise<Finding[]> {
  const [, other] = subjectsOf(ready);
  if (other === undefined) return [];
  const { item, unshown } = await sampleOf(deps, other, "abTest.subject");
  const { findings } = await checkSending(deps, project, by, { item, scheduledAt: null });
  return [...unshown.map(leftOut), ...findings];
}

/** Returns the findings about a message with both subjects, each once. */
function ofBoth(findings: readonly Finding[], other: readonly Finding[]): Finding[] {
  const known = new Set(findings.map(({ message }) => message));
  return [...findings, ...other.filter(({ message }) => !known.has(message))].filter(
    ({ code }) => code !== "suppressed_recipient",
  );
}

/** Returns the warnings about a test of two subjects. */
function testFindings(
  deps: Sending,
  project: Project,
  { abTest, html, contacts }: { abTest: AbTest; html: string | null; contacts: number },
): Finding[] {
  const measured =
    abTest.by === "opens"
      ? { opens: project.trackOpens, clicks: false }
      : { opens: false, clicks: project.trackClicks };
  const isTracked =
    html !== null && leavingOctets(deps, project, { tracking: measured }, html) > Buffer.byteLength(html);
  return [...trackingFindings(abTest, isTracked), ...sizeFindings(abTest, contacts)];
}

/** Maximum number of contacts that are tried until the values of one fit. */
export const MAX_SAMPLES = 20;

/** The message of the first contact whose values fit into it, and the contacts before it, whose values do not. */
interface Sample {
  contact: MergedContact | null;
  item: ReadItem;
  unshown: { email: string; failure: RenderingFailure }[];
}

/**
 * Returns the message of the first contact whose values fit. If the broadcast goes to no contact, the message has no values.
 * @param param the field of the request that a failure is about; default: the part that fails
 * @throws AppError 422 if it cannot be made for any
 */
export async function sampleOf(deps: Sending, ready: Ready, param?: string): Promise<Sample> {
  const { broadcast, segment } = ready;
  const filter = segment?.condition ?? null;
  const range = { senderId: broadcast.senderId, filter, after: "", below: idCeiling("con"), places: null };
  const { contacts } = await nextContacts(deps.db, range, MAX_SAMPLES);
  const unshown: Sample["unshown"] = [];
  for (const contact of contacts) {
    const item = await rendered(deps, ready, contact).catch(failureOf);
    if (!(item instanceof RenderingFailure)) return { contact, item, unshown };
    unshown.push({ email: contact.email, failure: item });
  }
  const [first] = unshown;
  if (first !== undefined) throw refusalOf(first.failure, param);
  const item = await itemFor(deps, ready, nobody(broadcast.from.email));
  return { contact: null, item, unshown };
}

function failureOf(error: unknown): RenderingFailure {
  if (error instanceof RenderingFailure) return error;
  throw error;
}

function leftOut({ email, failure }: Sample["unshown"][number]): Finding {
  return warning(
    "rendering_failure",
    `${email} would not get it: ${failure.message}`,
    "Correct the values of the contact, or shorten them with the filter `truncate`.",
  );
}

function nobody(email: string): MergedContact {
  return { email, firstName: null, lastName: null, properties: {} };
}

/** Providers require a link that readers see, and not every program shows a button for the header. */
async function lackingLink({ renderer }: Sending, { source, broadcast }: Ready): Promise<AppError | null> {
  const [part, shown] = source.html === null ? ["text", source.text ?? ""] : ["html", source.html];
  const variables = await refusing(
    renderer.variables(broadcast.senderId, { subject: "", html: null, text: shown }),
  );
  return variables.includes("unsubscribeUrl")
    ? null
    : invalid(part ?? "html", "must show the link to unsubscribe, {{ unsubscribeUrl }}.");
}

/** Laws such as CAN-SPAM require the address of the sender in what readers see. */
function lackingAddress({ postalAddress }: Project, { html, text }: ReadItem): AppError | null {
  if (postalAddress === null) return null;
  const [part, shown] = html === undefined ? ["text", text ?? ""] : ["html", scanHtml(html).text];
  return showsPostalAddress(shown, postalAddress)
    ? null
    : invalid(part, "must show the postal address of the project: {{ postalAddress }}, or its text.");
}

/** Returns the message of one contact, rendered. @throws AppError 422 if its values do not fit */
function itemFor(deps: Sending, ready: Ready, contact: MergedContact): Promise<ReadItem> {
  return refusing(rendered(deps, ready, contact));
}

/** Returns the message of one contact. @throws RenderingFailure */
async function rendered(
  { renderer }: Sending,
  { broadcast, source, variables, fallbacks }: Ready,
  contact: MergedContact,
): Promise<ReadItem> {
  const { senderId, from, replyTo, topicId } = broadcast;
  const data = mergeData(usedFields(variables), contact, fallbacks) ?? {};
  const made = await renderer.template(senderId, source, { ...data, unsubscribeUrl: LINK_VARIABLE });
  return {
    from,
    to: [{ email: contact.email }],
    replyTo,
    subject: made.subject,
    ...(made.html === null ? {} : { html: made.html }),
    ...(made.text === null ? {} : { text: made.text }),
    topicId,
    unsubscribeLink: true,
    stream: "bulk",
  };
}

/**
 * Returns the contact whose values a test shows; null if the broadcast goes to no contact.
 * @param contactId null: the first of the segment
 * @throws AppError 422 if there is no such contact
 */
export async function shownContact(
  deps: Sending,
  ready: Ready,
  contactId: string | null,
): Promise<MergedContact | null> {
  if (contactId === null) return (await sampleOf(deps, ready)).contact;
  const contact = await getContact(deps.db, ready.broadcast.senderId, contactId);
  if (contact === null) throw invalid("contactId", "must be the id of a contact of this project.");
  return contact;
}

/**
 * Returns the message that a test sends to an address: as a contact would get it. Its link to unsubscribe does nothing.
 * @param contact null: the message has no values
 */
export async function testItem(
  deps: Sending,
  ready: Ready,
  contact: MergedContact | null,
  to: string,
): Promise<ReadItem> {
  const { topicId: _, unsubscribeLink: __, ...item } = await itemFor(deps, ready, contact ?? nobody(to));
  const plain = (part: string) => part.replaceAll(LINK_VARIABLE, `${deps.publicUrl}/u/test`);
  return {
    ...item,
    to: [{ email: to }],
    subject: `[Test] ${item.subject ?? ""}`,
    ...(item.html === undefined ? {} : { html: plain(item.html) }),
    ...(item.text === undefined ? {} : { text: plain(item.text) }),
  };
}
