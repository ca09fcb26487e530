import { POSTAL_ADDRESS, withPostalAddress } from "../../core/audience/postal-address.ts";
import type { PropertyValue } from "../../core/audience/properties.ts";
import { AppError, invalid } from "../../core/errors.ts";
import { isBlank } from "../../core/messages/send-rules.ts";
import { onboardingDomain } from "../../core/own-names.ts";
import type { TemplateSource } from "../../core/templates/render.ts";
import { fallbacksOf } from "../../store/audience/properties.ts";
import type { Broadcast } from "../../store/audience/broadcasts.ts";
import type { Db } from "../../store/engine/client.ts";
import type { Project } from "../../store/projects/projects.ts";
import { findTemplate } from "../../store/projects/templates.ts";
import type { SendingKey } from "../accept/accept.ts";
import type { Sending } from "../accept/sending.ts";
import { type SegmentFilter, segmentFilter } from "../audience/segments.ts";
import { refusing } from "../projects/templates.ts";
import type { WholeBroadcast } from "./save.ts";

/** A request that acts on a broadcast. */
export interface Acting {
  project: Project;
  by: SendingKey;
  /** Milliseconds. */
  now: number;
}

/** A draft with all that it needs to be sent. */
export interface Ready extends WholeBroadcast {
  /** Subject and bodies, those of the broadcast before those of its template. */
  source: TemplateSource;
  variables: string[];
  /** Null: all contacts. */
  segment: SegmentFilter | null;
  /** Values that a contact without its own has, by the name of the property. */
  fallbacks: Readonly<Record<string, PropertyValue>>;
}

/**
 * Returns a draft with the content that will be sent, which is not checked as a message yet.
 * @throws AppError 422 for what it lacks; 409 if its segment names what was deleted; 403 from the onboarding domain
 */
export async function readyToSend(
  { db, renderer, serviceDomain }: Sending,
  { project, now }: Acting,
  { broadcast, body }: WholeBroadcast,
): Promise<Ready> {
  const { id: senderId } = project;
  const { segmentId, from } = broadcast;
  if (from.email.toLowerCase().endsWith(`@${onboardingDomain(serviceDomain)}`))
    throw new AppError("permission_error", "A broadcast cannot be from the onboarding domain.", {
      code: "domain_not_verified",
      param: "from.email",
    });
  const segment = segmentId === null ? null : await segmentFilter(db, senderId, segmentId, now);
  const written = await sourceOf(db, senderId, { broadcast, body });
  const source = withPostalAddress(written, project.postalAddress);
  const variables = await refusing(renderer.variables(senderId, source));
  const ofOther = await variablesOfOther(renderer, senderId, source, broadcast);
  if ([...variables, ...ofOther].includes(POSTAL_ADDRESS)) throw emptyAddress(project);
  const fallbacks = await fallbacksOf(db, senderId);
  const { subject, html, text } = source;
  return {
    broadcast: { ...broadcast, subject },
    body: { html, text },
    source,
    variables: [...new Set([...variables, ...ofOther])],
    segment,
    fallbacks,
  };
}

/** A variable that shows nothing would leave a gap where the law asks for the address. */
function emptyAddress({ postalAddress }: Project): AppError {
  return invalid(
    "html",
    postalAddress === null
      ? "shows {{ postalAddress }}, but the project has none. Set `postalAddress` of the project."
      : "must show {{ postalAddress }} without filters and tags around it, and only in html and text.",
  );
}

/** Returns a broadcast with each of the subjects that it tests; as it is if it tests none. */
export function subjectsOf(ready: Ready): readonly Ready[] {
  const { abTest } = ready.broadcast;
  if (abTest === null) return [ready];
  return [ready, { ...ready, source: { ...ready.source, subject: abTest.subject } }];
}

/** Returns the variables of the other subject of a test. @throws AppError 422 if both subjects are the same */
async function variablesOfOther(
  renderer: Sending["renderer"],
  senderId: string,
  { subject }: TemplateSource,
  { abTest }: Broadcast,
): Promise<string[]> {
  if (abTest === null) return [];
  if (abTest.subject.trim() === subject.trim())
    throw invalid("abTest.subject", "must differ from the subject of the broadcast.");
  const other = { subject: abTest.subject, html: null, text: null };
  return refusing(renderer.variables(senderId, other), "abTest.subject");
}

async function sourceOf(
  db: Db,
  senderId: string,
  { broadcast: { templateId, ...broadcast }, body }: WholeBroadcast,
): Promise<TemplateSource> {
  const template = templateId === null ? null : await findTemplate(db, senderId, templateId);
  if (templateId !== null && template === null)
    throw invalid("templateId", "was deleted. Choose another template.", "template_not_found");
  const subject = broadcast.subject || template?.subject || "";
  const html = body.html || template?.html || null;
  const text = body.text || template?.text || null;
  if (subject.trim() === "") throw invalid("subject", "is required.", "missing_field");
  if (isBlank(html) && isBlank(text))
    throw invalid(
      "html",
      "is required, unless text is given. At least one of them must not be blank.",
      "missing_field",
    );
  return { subject, html, text };
}
