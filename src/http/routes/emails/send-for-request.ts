import type { PreparedSend } from "../../../flows/accept/accept.ts";
import { type PlacedSend, sendOne } from "../../../flows/threads/send-one.ts";
import type { Statement } from "../../../store/engine/client.ts";
import type { Project } from "../../../store/projects/projects.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { type Answer, accepted } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import type { Principal } from "../../routing/route.ts";

/** A request that sends a message. */
export interface SendContext {
  project: Project;
  principal: Principal;
  now: number;
  requestId: string;
}

/** The answer to a send, and statements for the same write. */
export interface SendAnswer {
  /** If left out, the message with its warnings. */
  show?: (prepared: PreparedSend) => Answer;
  record: (answer: Answer) => readonly Statement[];
}

/** Sends one message for a request. */
export async function sendForRequest(
  deps: Parts,
  { project, principal, now, requestId }: SendContext,
  compose: () => Promise<PlacedSend>,
  { show = showSent, record }: SendAnswer,
): Promise<Answer> {
  const by = { project, by: principal, now };
  const prepared = await sendOne(deps, by, compose, (sent) => record(show(sent)));
  logAccepted(requestId, [prepared.accepted.id]);
  return show(prepared);
}

function showSent({ accepted: sent, warnings }: PreparedSend): Answer {
  return { ...accepted(sent), warnings };
}
