import { firstChars } from "../core/first-chars.ts";
import { leftOut, MAX_TRANSCRIPT_LINES } from "../core/transcripts.ts";
import type { Db, Guard, Statement } from "./engine/client.ts";

/** One try at delivering to one recipient, with its conversation. */
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
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  /** Lines of the SMTP conversation, without message body and secrets. */
  transcript: readonly string[];
}

/** Characters kept of one line. */
export const MAX_TRANSCRIPT_LINE_CHARS = 2100;
/** Characters kept of one conversation: a peer that talks without end must not fill the database. */
export const MAX_TRANSCRIPT_CHARS = 16_384;

/** Stores an attempt where the guard holds. Of a conversation too long, what is in its middle is left out. */
export function insertAttempt(attempt: Attempt, guard: Guard): Statement {
  return {
    sql: `INSERT INTO attempts (message_id, ord, attempt, started_at, duration_ms, outcome, mx, ip, tls, smtp_code,
        enhanced_code, diagnostic, transcript)
      SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${guard.sql}`,
    args: [
      attempt.messageId,
      attempt.ord,
      attempt.attempt,
      attempt.startedAt,
      attempt.durationMs,
      attempt.outcome,
      attempt.mx,
      attempt.ip,
      attempt.tls,
      attempt.smtpCode,
      attempt.enhancedCode,
      attempt.diagnostic,
      JSON.stringify(boundedTranscript(attempt.transcript)),
      ...guard.args,
    ],
  };
}

/** The conversation within its bounds: how it began and how it ended say most. Cut lines are well-formed Unicode. */
export function boundedTranscript(lines: readonly string[]): string[] {
  const cut = lines.map((line) => firstChars(line, MAX_TRANSCRIPT_LINE_CHARS));
  const chars = cut.reduce((sum, line) => sum + line.length, 0);
  if (cut.length <= MAX_TRANSCRIPT_LINES && chars <= MAX_TRANSCRIPT_CHARS) return cut;
  const begins = cut.slice(0, fitting(cut));
  const rest = cut.slice(begins.length).reverse();
  const ends = rest.slice(0, fitting(rest)).reverse();
  return [...begins, leftOut(cut.slice(begins.length, cut.length - ends.length)), ...ends];
}

/** Characters that the line which tells of a cut takes at most. */
const NOTICE_CHARS = 40;

/** How many of the first lines fit into half of the bounds, with room for the line that tells of the cut. */
function fitting(lines: readonly string[]): number {
  let chars = 0;
  for (const [at, line] of lines.entries()) {
    chars += line.length;
    if (at === MAX_TRANSCRIPT_LINES / 2 - 1 || chars > (MAX_TRANSCRIPT_CHARS - NOTICE_CHARS) / 2) return at;
  }
  return lines.length;
}

/** An attempt as lists show it. */
export interface ListedAttempt extends Attempt {
  /** The recipient. */
  email: string;
}

/** Where an attempt stands among its message's: by the time it began, then by recipient. */
export type AttemptPlace = Pick<Attempt, "startedAt" | "ord" | "attempt">;

interface AttemptRow {
  message_id: string;
  ord: number;
  email: string;
  attempt: number;
  started_at: number;
  duration_ms: number;
  outcome: string;
  mx: string | null;
  ip: string | null;
  tls: string | null;
  smtp_code: number | null;
  enhanced_code: string | null;
  diagnostic: string | null;
  transcript: string | null;
}

/** The attempts of a message of the project, in the order in which they began, from behind `after` on. */
export async function listAttempts(
  db: Db,
  senderId: string,
  messageId: string,
  after: AttemptPlace | null,
  take: number,
): Promise<ListedAttempt[]> {
  const rows = await db.all<AttemptRow>(
    `SELECT a.message_id, a.ord, r.email, a.attempt, a.started_at, a.duration_ms, a.outcome, a.mx, a.ip, a.tls,
        a.smtp_code, a.enhanced_code, a.diagnostic, a.transcript
      FROM recipients r JOIN attempts a ON a.message_id = r.message_id AND a.ord = r.ord
      WHERE r.message_id = ? AND r.sender_id = ? AND (a.started_at, a.ord, a.attempt) > (?, ?, ?)
      ORDER BY a.started_at, a.ord, a.attempt LIMIT ?`,
    [messageId, senderId, after?.startedAt ?? -1, after?.ord ?? -1, after?.attempt ?? -1, take],
  );
  return rows.map((row) => ({
    messageId: row.message_id,
    ord: row.ord,
    email: row.email,
    attempt: row.attempt,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    mx: row.mx,
    ip: row.ip,
    tls: row.tls,
    smtpCode: row.smtp_code,
    enhancedCode: row.enhanced_code,
    diagnostic: row.diagnostic,
    transcript: row.transcript === null ? [] : JSON.parse(row.transcript),
  }));
}
