import type { Member, State } from "./pool-state.ts";

/**
 * Time for which an abandoned message that the peer has whole is still waited for: most peers that look through a mail
 * have done so by then, and what is broken off before is tried again though the peer may have it (RFC 5321 §4.5.3.2.6).
 * It begins anew with the next message on the connection.
 */
export const VERDICT_PATIENCE_MS = 120_000;

/** Ends a connection that carries only what nobody waits for any more. To be called where that may have changed. */
export function cutAbandoned(state: State, member: Member): void {
  member.cancelPatience?.();
  member.cancelPatience = null;
  if (member.underway === 0 || member.aborted < member.underway) return;
  const end = (): void => member.connection.cut("aborted");
  if (member.connection.awaitsVerdict())
    member.cancelPatience = state.deps.clock.after(VERDICT_PATIENCE_MS, end);
  else end();
}
