import { AppError } from "../../core/errors.ts";
import { addresseesOf } from "../../core/messages/send-item.ts";
import { calendarFaults } from "../../core/messages/calendar.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import { type RenderedTemplate, RenderingFailure, refusalOf } from "../../core/templates/render.ts";
import { CLIPPED_OCTETS, type Finding, findingsIn, warning } from "../../mail/text/findings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { findSuppressions } from "../../store/projects/suppressions.ts";
import { findTemplate } from "../../store/projects/templates.ts";
import { prepareSend, type SendingKey, type SendOptions } from "./accept.ts";
import type { SendContent } from "./content.ts";
import { leavingOctets } from "./leaving-html.ts";
import { recipientFindings } from "./recipient-findings.ts";
import { sendWarnings } from "./send-warnings.ts";
import { refuseOverVolume } from "./volume.ts";
import type { Sending } from "./sending.ts";

/** The effects that a send would have. */
export interface SendCheck {
  /** Why it would be refused; null if it would be accepted. */
  error: AppError | null;
  /** Octets of the message, roughly. */
  size: number;
  /** True if Gmail would hide the end of the html. */
  clipped: boolean;
  findings: Finding[];
}

/** Code of the finding that a recipient is suppressed. */
export const SUPPRESSED = "suppressed_recipient";
/** Octets of a header, and of base64 for each octet of a file with its line ends. */
const HEADER_OCTETS = 1024;
const BASE64_GROWTH = 1.37;

/** Content that is not kept. */
const NOTHING: SendContent = {
  mayWriteAhead: () => false,
  texts: async () => ({ html: null, text: null }),
  keep: async () => ({ body: null, attachments: [], size: 0 }),
};

/**
 * Puts a send through the rules of sending, and looks at its message. Stores and sends nothing.
 * @param options of a send that is not posted, such as a reply
 */
export async function checkSending(
  deps: Sending,
  project: Project,
  by: SendingKey,
  send: CheckedSend,
  options: Omit<SendOptions, "content"> = {},
): Promise<SendCheck> {
  const refusal = await refusalOfSend(deps, project, by, send, options);
  const { rendered, error, findings: ofTemplate } = await renderedBody(deps, project, send);
  const { item } = send;
  const attachments = (item.attachments ?? []).map(({ filename, content }) => ({
    filename,
    octets: Math.floor((content.length * 3) / 4),
  }));
  const { subject, html, text } = rendered;
  const names = Object.keys(item.headers ?? {}).map((name) => name.toLowerCase());
  const unsubscribes = item.unsubscribeLink === true || names.includes("list-unsubscribe");
  const htmlOctets = leavingOctets(deps, project, item, html);
  const files = attachments.reduce((sum, { octets }) => sum + octets, 0);
  return {
    error: refusal ?? error,
    size: Math.ceil(HEADER_OCTETS + htmlOctets + Buffer.byteLength(text ?? "") + files * BASE64_GROWTH),
    clipped: htmlOctets > CLIPPED_OCTETS,
    findings: [
      ...(await suppressedFindings(deps, project, send)),
      ...recipientFindings(item),
      ...calendarFindings(item),
      ...ofTemplate,
      ...findingsIn({
        subject,
        html,
        text,
        makesText: project.textFromHtml,
        unsubscribes,
        attachments,
        htmlOctets,
      }),
      ...sendWarnings(item, [], false).map(({ param, message }) =>
        warning("replaced_header", `${param}: ${message}`, "Leave out the header, or `unsubscribeLink`."),
      ),
    ],
  };
}

function calendarFindings(item: CheckedSend["item"]): Finding[] {
  if (item.calendar === undefined) return [];
  const to = addresseesOf(item).map(({ email }) => email);
  const faults = calendarFaults(item.calendar, { from: item.from.email, to });
  return faults.map(({ code, message, fix }) => warning(code, message, fix));
}

/** Returns why the send would be refused, by the rules of a send; null if it would not. */
async function refusalOfSend(
  deps: Sending,
  project: Project,
  by: SendingKey,
  send: CheckedSend,
  options: Omit<SendOptions, "content">,
): Promise<AppError | null> {
  try {
    const { recipients } = await prepareSend(deps, project, by, send, { ...options, content: NOTHING });
    await refuseOverVolume(deps, project, recipients);
    return null;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

interface RenderedBody {
  rendered: RenderedTemplate;
  /** Why the template does not render. */
  error: AppError | null;
  findings: Finding[];
}

async function renderedBody(
  { db, renderer }: Sending,
  { id: senderId }: Project,
  { item }: CheckedSend,
): Promise<RenderedBody> {
  const own = { subject: item.subject ?? "", html: item.html ?? null, text: item.text ?? null, missing: [] };
  const inline = { rendered: own, error: null, findings: [] };
  if (item.templateId === undefined) return inline;
  const template = await findTemplate(db, senderId, item.templateId);
  if (template === null) return inline;
  const data = item.data ?? {};
  try {
    const rendered = await renderer.template(senderId, template, data);
    const missing = rendered.missing.filter((name) => name !== "unsubscribeUrl");
    const findings = missing.map((name) =>
      warning("missing_variable", `The data has no ${name}, which the template uses.`, "Give it in `data`."),
    );
    return { rendered, error: null, findings };
  } catch (error) {
    if (!(error instanceof RenderingFailure)) throw error;
    return { rendered: own, error: refusalOf(error), findings: [] };
  }
}

async function suppressedFindings(
  { db, clock }: Sending,
  { id: senderId }: Project,
  { item }: CheckedSend,
): Promise<Finding[]> {
  const keys = addresseesOf(item).map(({ key }) => key);
  const found = await findSuppressions(db, senderId, keys, clock.now());
  return [...found.keys()].map((email) =>
    warning(
      SUPPRESSED,
      `${email} is suppressed, so the message would not go there.`,
      `Leave it out, or lift the suppression with DELETE /v1/suppressions?email=${encodeURIComponent(email)}.`,
    ),
  );
}
