import { get } from "../../api/client.ts";
import { ApiError } from "../../api/error.ts";
import { useResource } from "../../api/resource.ts";
import type { Explanation, Message } from "../../api/types.ts";
import { localExplanation, messageAnswer, TROUBLED } from "../../words/answer.ts";

const WHO: Readonly<Record<string, string>> = {
  you: "You can fix this.",
  recipient: "Only the recipient can fix this.",
  provider: "The recipient's provider decides this.",
  us: "The operator of this service can fix this.",
};

/** Recipients that are explained. */
const SHOWN = 5;

async function explain(message: Message): Promise<Explanation | null> {
  try {
    return await get<Explanation>(`/v1/emails/${message.id}/explain`);
  } catch (thrown) {
    // A service without this operation answers 404.
    if (thrown instanceof ApiError && thrown.status === 404) return localExplanation(message);
    throw thrown;
  }
}

/** Why a message did not arrive, in plain words with what to do. */
export function Why({ message }: { message: Message }) {
  const troubled = message.direction === "outbound" && TROUBLED.has(message.status);
  return troubled ? <Reasons key={`${message.id} ${message.status}`} message={message} /> : null;
}

function Reasons({ message }: { message: Message }) {
  const why = useResource(`why ${message.id} ${message.status}`, () => explain(message));
  const explanation = why.value.value ?? localExplanation(message);
  const recipients = (explanation?.recipients ?? []).filter(({ status }) => TROUBLED.has(status));
  if (recipients.length === 0) return null;
  return (
    <section class="why" aria-label="Why">
      <h3>Why?</h3>
      {recipients.slice(0, SHOWN).map((one) => (
        <div key={one.email} class="why-one">
          {message.recipients.length > 1 ? <p class="strong">{one.email}</p> : null}
          {reasonsOf(message, one).map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
          <Reply text={replyOf(message, one.email)} />
        </div>
      ))}
    </section>
  );
}

/**
 * Returns the sentences about one recipient, without what the answer above them has already said, and without the reply
 * below them, which the API quotes.
 */
function reasonsOf(
  message: Message,
  { email, what, why, next, who }: Explanation["recipients"][number],
): string[] {
  const said = message.recipients.length === 1 ? messageAnswer(message) : "";
  const cause = why.replace(` The reply: ${replyOf(message, email)}`, "");
  return [cause === "" ? what : cause, next, WHO[who] ?? ""].filter((text) => text !== "" && text !== said);
}

function replyOf({ recipients }: Message, email: string): string | null {
  return recipients.find((recipient) => recipient.email === email)?.diagnostic ?? null;
}

function Reply({ text }: { text: string | null }) {
  return text === null ? null : <pre class="reply">{text}</pre>;
}
