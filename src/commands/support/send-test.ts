import { MOVING } from "../../core/messages/states.ts";
import { type Clock, remainingTime, sleep } from "../../core/time/clock.ts";
import { fail, type HealthLine, ok, warn } from "../../flows/health/check.ts";
import { type Api, callApi, requestApi, type Schemas } from "./api-client.ts";
import { usage } from "./exit.ts";

/** Time between two looks for an answer, milliseconds. */
const POLL_MS = 1000;
/** Maximum number of results that are read of an answer. */
const MAX_RESULTS = 50;
/** A result as Authentication-Results has it (RFC 8601), or a program that answers with its findings. */
const RESULT =
  /\b(spf|dkim|dmarc)(?:[ -]check)?\s*[=:]\s*"?(pass|fail|softfail|neutral|none|policy|temperror|permerror)\b/gi;

/**
 * Sends a message from an inbox of the project, and waits for its answer or bounce. Returns the results of authentication that came back:
 * programs answer with them, and people with the message as an attachment.
 */
export async function sendTest(
  { clock, api }: { clock: Clock; api: Api },
  to: string,
  waitMs: number,
): Promise<HealthLine> {
  const name = `send ${to}`;
  const inboxes = await callApi<{ data: { address: string }[] }>(clock, api, "GET", "/v1/inboxes?limit=1");
  const from = inboxes.data[0]?.address;
  if (from === undefined)
    throw usage("--send needs an inbox, so that an answer comes back: postrider inboxes create");
  const text = "This is a test of postrider doctor.\n\nPlease answer with this message as an attachment.\n";
  const item = { from, to: [to], subject: "Does this arrive?", text };
  const { id } = await callApi<Schemas["AcceptedMessage"]>(clock, api, "POST", "/v1/emails", item);
  const left = remainingTime(clock, waitMs);
  const moving: ReadonlySet<string> = MOVING;
  for (;;) {
    const { status, threadId, recipients } = await callApi<Schemas["Message"]>(
      clock,
      api,
      "GET",
      `/v1/emails/${id}`,
    );
    const [recipient] = recipients;
    if (!moving.has(status) && status !== "delivered" && status !== "sent")
      return {
        name,
        ...fail(
          `The message ${status}: ${recipient?.diagnostic ?? recipient?.reason ?? "no reason is known"}`,
          `Read GET /v1/emails/${id}/explain.`,
        ),
      };
    const answer = threadId == null ? null : await answerIn({ clock, api }, threadId);
    if (answer !== null) return { name, ...judged(answer) };
    if (left() === 0)
      return {
        name,
        ...warn(
          `The message is ${status}, and no answer came within ${waitMs / 1000} s.`,
          "Write to a program that answers with what it found, or answer by hand with the message as an attachment.",
        ),
      };
    await sleep(clock, Math.min(POLL_MS, left()));
  }
}

/** Returns the body of the first answer in a thread; null if there is none. Its header has our own results, about the answer. */
async function answerIn(
  { clock, api }: { clock: Clock; api: Api },
  threadId: string,
): Promise<string | null> {
  const { messages } = await callApi<{ messages: { id: string; direction: string }[] }>(
    clock,
    api,
    "GET",
    `/v1/threads/${threadId}`,
  );
  const answer = messages.find(({ direction }) => direction === "inbound");
  if (answer === undefined) return null;
  const { text } = await requestApi(clock, api, { method: "GET", path: `/v1/emails/${answer.id}/raw` });
  return text.slice(text.indexOf("\r\n\r\n"));
}

function judged(body: string) {
  const found = [...body.matchAll(RESULT).take(MAX_RESULTS)].map(([, method = "", result = ""]) =>
    `${method}=${result}`.toLowerCase(),
  );
  const results = [...new Set(found)];
  if (results.length === 0)
    return warn(
      "An answer came, without results of authentication.",
      "Answer with the message as an attachment, or write to a program that shows what it found.",
    );
  const bad = results.filter((result) => !result.endsWith("=pass"));
  return bad.length === 0
    ? ok(`The receiver found ${results.join(", ")}.`)
    : fail(
        `The receiver found ${results.join(", ")}.`,
        "Run doctor without --send: it says which record is wrong.",
      );
}
