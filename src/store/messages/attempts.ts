import { firstChars, omittedLinesNotice, MAX_TRANSCRIPT_LINES } from "../../core/text.ts";
import { type Db, type Guard, type Statement, textsByGuard } from "../engine/client.ts";
import { json, mapping, plain, type Row } from "../engine/columns.ts";

/** One try to deliver to one recipient, with its conversation. */
export interface Attempt {
  messageId: string;
  ord: number;
  attempt: number;
  /** Milliseconds since the epoch. */
  startedAt: number;
  durationMs: number;
  outcome: string;
  mx: string | null;
  ip: string | null;
  tls: string | null;
  /** Our address that the attempt came from. Null if the system chose it, or nothing was sent. */
  egress: string | null;
  /** The route that it took. Null for the default one. */
  routeId: string | null;
  /** The id by which events of that route's relay name the message. Null: it has none, or did not take the message. */
  relayId: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  /** Lines of the SMTP conversation, without message body and secrets. */
  transcript: readonly string[];
}

/** Maximum characters kept of one line. */
export const MAX_TRANSCRIPT_LINE_CHARS = 2100;
/**
 * Maximum characters kept of one conversation: a peer that never stops talking must not fill the database.
 */
export const MAX_TRANSCRIPT_CHARS = 16_384;

const ATTEMPTS = mapping<Attempt>({
  messageId: plain("message_id"),
  ord: plain("ord"),
  attempt: plain("attempt"),
  startedAt: plain("started_at"),
  durationMs: plain("duration_ms"),
  outcome: plain("outcome"),
  mx: plain("mx"),
  ip: plain("ip"),
  tls: plain("tls"),
  egress: plain("egress"),
  routeId: plain("route_id"),
  relayId: plain("relay_id"),
  smtpCode: plain("smtp_code"),
  enhancedCode: plain("enhanced_code"),
  diagnostic: plain("diagnostic"),
  transcript: { ...json("transcript"), read: ({ transcript }) => JSON.parse(String(transcript ?? "[]")) },
});

const insertText = textsByGuard(
  (condition) =>
    `INSERT INTO attempts (${ATTEMPTS.columns}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${condition}`,
);

/**
 * Returns the statement that stores an attempt if the guard holds. If its conversation is too long, the middle is left
 * out.
 */
export function insertAttempt(attempt: Attempt, guard: Guard): Statement {
  return {
    sql: insertText(guard),
    args: [
      ...ATTEMPTS.values({ ...attempt, transcript: boundedTranscript(attempt.transcript) }),
      ...guard.args,
    ],
  };
}

/**
 * Returns a conversation within its bounds. The beginning and the end are kept, because they say most. Cut lines are
 * well-formed Unicode.
 */
export function boundedTranscript(lines: readonly string[]): string[] {
  const cut = lines.map((line) => firstChars(line, MAX_TRANSCRIPT_LINE_CHARS));
  const chars = cut.reduce((sum, line) => sum + line.length, 0);
  if (cut.length <= MAX_TRANSCRIPT_LINES && chars <= MAX_TRANSCRIPT_CHARS) return cut;
  const begins = cut.slice(0, fitting(cut));
  const rest = cut.slice(begins.length).reverse();
  const ends = rest.slice(0, fitting(rest)).reverse();
  return [...begins, omittedLinesNotice(cut.slice(begins.length, cut.length - ends.length)), ...ends];
}

/** Characters that the line about the omitted part takes at most. */
const NOTICE_CHARS = 40;

/** Returns how many of the first lines fit into half of the bounds, if the line about the omitted part follows. */
function fitting(lines: readonly string[]): number {
  let chars = 0;
  for (const [at, line] of lines.entries()) {
    chars += line.length;
    if (at === MAX_TRANSCRIPT_LINES / 2 - 1 || chars > (MAX_TRANSCRIPT_CHARS - NOTICE_CHARS) / 2) return at;
  }
  return lines.length;
}

export interface ListedAttempt extends Attempt {
  email: string;
}

/** The position of an attempt in the list of its message: by the time it began, then by recipient. */
export type AttemptCursor = Pick<Attempt, "startedAt" | "ord" | "attempt">;

/** Returns the attempts of a message of the project after a position, in the order in which they began. */
export async function listAttempts(
  db: Db,
  senderId: string,
  messageId: string,
  after: AttemptCursor | null,
  take: number,
): Promise<ListedAttempt[]> {
  const columns = ATTEMPTS.names.map((name) => `a.${name}`).join(", ");
  const rows = await db.all<Row & { email: string }>(
    `SELECT ${columns}, r.email
      FROM recipients r JOIN attempts a ON a.message_id = r.message_id AND a.ord = r.ord
      WHERE r.message_id = ? AND r.sender_id = ? AND (a.started_at, a.ord, a.attempt) > (?, ?, ?)
      ORDER BY a.started_at, a.ord, a.attempt LIMIT ?`,
    [messageId, senderId, after?.startedAt ?? -1, after?.ord ?? -1, after?.attempt ?? -1, take],
  );
  return rows.map((row) => ({ ...ATTEMPTS.read(row), email: row.email }));
}

/** Returns host and TLS of the attempts that reached a host, of the newest messages of all projects. */
export function lastSessions(db: Db, limit: number): Promise<{ mx: string; tls: string | null }[]> {
  return db.all(
    `SELECT mx, tls FROM (SELECT mx, tls, smtp_code FROM attempts ORDER BY message_id DESC, ord DESC, attempt DESC LIMIT ?)
      WHERE mx IS NOT NULL AND smtp_code IS NOT NULL`,
    [limit],
  );
}
