import type { Message } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import type { Tone } from "../../words/status.ts";

/** The meaning of each result, for a person who decides whether to trust the sender. */
const MEANINGS: Readonly<Record<string, string>> = {
  "spf pass": "The sending server may send for this domain.",
  "spf fail": "The domain says that this server may not send for it.",
  "spf softfail": "The domain says that this server is probably not one of its servers.",
  "spf none": "The domain says nothing about its servers.",
  "dkim pass": "The signature is valid, so the domain vouches for the message.",
  "dkim fail": "The signature does not fit, so the message may have been changed.",
  "dkim none": "The message is not signed.",
  "dmarc pass": "The address in From is authentic.",
  "dmarc fail": "The address in From could not be proved.",
  "dmarc none": "The domain asks for no check of its addresses.",
};

function toneOf(result: string): Tone {
  if (result === "pass") return "good";
  return result === "fail" || result === "permerror" ? "bad" : result === "softfail" ? "late" : "quiet";
}

/** The authentication results of an inbound message, and its envelope. */
export function Authentication({ message: { auth, envelope } }: { message: Message }) {
  const { spf, dkim, dmarc, arc } = auth ?? {};
  return (
    <>
      <ul class="checks">
        <Result name="SPF" result={spf?.result ?? "none"} about={spf?.domain} />
        {(dkim ?? []).length === 0 ? <Result name="DKIM" result="none" /> : null}
        {(dkim ?? []).map(({ result, domain, selector }) => (
          <Result
            key={`${domain} ${selector}`}
            name="DKIM"
            result={result}
            about={[selector, domain].filter(Boolean).join(" at ")}
          />
        ))}
        <Result
          name="DMARC"
          result={dmarc?.result ?? "none"}
          about={dmarc?.policy ? `policy ${dmarc.policy}` : dmarc?.domain}
        />
        {arc === undefined || arc === null ? null : <Result name="ARC" result={arc.result} />}
      </ul>
      {envelope === undefined || envelope === null ? null : (
        <dl class="facts">
          <div>
            <dt>Return path</dt>
            <dd>{envelope.mailFrom === "" ? "<>" : envelope.mailFrom}</dd>
          </div>
          <div>
            <dt>Envelope to</dt>
            <dd>{envelope.rcptTo?.join(", ")}</dd>
          </div>
          <div>
            <dt>From server</dt>
            <dd>{[envelope.helo, envelope.ip, envelope.tls].filter(Boolean).join(" · ")}</dd>
          </div>
        </dl>
      )}
    </>
  );
}

interface ResultProps {
  name: string;
  result: string;
  about?: string | null | undefined;
}

function Result({ name, result, about }: ResultProps) {
  return (
    <li>
      <Dot tone={toneOf(result)} word={result} />
      <div>
        <p>
          <strong>{name}</strong> {MEANINGS[`${name.toLowerCase()} ${result}`] ?? ""}
        </p>
        {about === undefined || about === null || about === "" ? null : <p class="quiet">{about}</p>}
      </div>
    </li>
  );
}
