import type { Guard, Statement } from "./client.ts";

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

/** Stores an attempt where the guard holds. */
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
      JSON.stringify(attempt.transcript),
      ...guard.args,
    ],
  };
}
