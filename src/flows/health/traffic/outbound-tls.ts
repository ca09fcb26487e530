import type { Db } from "../../../store/engine/client.ts";
import { lastSessions } from "../../../store/messages/attempts.ts";
import { ALWAYS_TLS, GOOD_TLS, providerLane } from "../../lanes/providers.ts";
import { type Check, type Finding, ok, warn } from "../check.ts";

/** Attempts that are read, newest first. */
const LAST_ATTEMPTS = 500;
/** Warns if one of the last messages went to Google or Microsoft without TLS 1.2, as its attempt recorded it. */
export function outboundTlsCheck(db: () => Db): Check {
  return {
    name: "outbound tls",
    needsDatabase: true,
    fix: "Check that the database is reachable.",
    run: async () => findingOf(await lastSessions(db(), LAST_ATTEMPTS)),
  };
}

function findingOf(sessions: readonly { mx: string; tls: string | null }[]): Finding {
  const seen = sessions.flatMap(({ mx, tls }) => {
    const provider = providerLane([mx])?.provider;
    return provider !== undefined && ALWAYS_TLS.has(provider.name) ? [{ title: provider.title, tls }] : [];
  });
  if (seen.length === 0) return ok("None of the last messages went to Google or Microsoft.");
  const weak = seen.filter(({ tls }) => tls === null || !GOOD_TLS.test(tls));
  if (weak.length === 0) return ok(`The last ${seen.length} messages to Google and Microsoft went over TLS.`);
  const how = weak.map(({ title, tls }) => `${title} (${tls ?? "in the clear"})`);
  return warn(
    `Of the last ${seen.length} messages to Google and Microsoft, ${weak.length} went without TLS 1.2: ${[...new Set(how)].join(", ")}.`,
    "Read the transcript of such a message. A firewall that takes STARTTLS out of replies is the usual cause.",
  );
}
