import type { Clock } from "../../../core/time/clock.ts";
import type { AddressGuard } from "../../../net/address-guard.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import { type GuardedOutcome, requestGuarded } from "../../../net/guarded-request.ts";
import { UNSUBSCRIBE_PATH } from "../../mime/unsubscribe.ts";
import { type Check, fail, type Finding, ok, warn } from "../check.ts";

export interface LinkParts {
  clock: Clock;
  resolver: Resolver;
  /** Trusted authorities in PEM, for tests. */
  ca?: string | undefined;
  /** Addresses that may be connected to; left out: all. */
  mayReach?: AddressGuard;
}

/** A token that no link has. */
const MADE_UP = "doctor";
/** Time for lookup, connection and answer together, milliseconds. */
const REQUEST_MS = 4_000;
const NOT_FOUND = 404;

/** Unsubscribes by one click with a made-up token at PUBLIC_URL, as mail programs do (RFC 8058). */
export function unsubscribeCheck(parts: LinkParts, publicUrl: string): Check {
  return {
    name: "unsubscribe page",
    fix: "Check PUBLIC_URL.",
    run: async () =>
      (await linkFault(parts, publicUrl)) ?? ok(`One-click unsubscribing works at ${publicUrl}.`),
  };
}

/** Returns why a link to unsubscribe at a base URL would not work; null if our service answers there. */
export async function linkFault(parts: LinkParts, base: string): Promise<Finding | null> {
  const outcome = await requestGuarded(
    { mayReach: () => true, ...parts },
    {
      url: `${base}${UNSUBSCRIBE_PATH}${MADE_UP}`,
      headers: { "Content-Type": "application/x-www-form-urlencoded", Accept: "application/json" },
      body: [Buffer.from("List-Unsubscribe=One-Click")],
      timeoutMs: REQUEST_MS,
      allowPrivate: true,
    },
  );
  return faultOf(outcome, base);
}

function faultOf(outcome: GuardedOutcome, base: string): Finding | null {
  if (outcome.kind === "failed")
    return warn(
      `Links to unsubscribe at ${base} cannot be reached: ${outcome.reason}.`,
      "Check the name, its certificate and the proxy. If this machine cannot reach its own public address, run `postrider doctor --url` on another one.",
    );
  const { status, headers, body } = outcome.response;
  // Another server's 404, or ours for another path, is no sign that the link works.
  if (status === NOT_FOUND && Buffer.from(body).toString().includes("No such link.")) return null;
  if (status >= 300 && status < 400)
    return fail(
      `A link to unsubscribe at ${base} is redirected to ${headers.get("location") ?? "another URL"}, and mail programs do not follow (RFC 8058 §3.1).`,
      "Set PUBLIC_URL to the address that answers without a redirect.",
    );
  return fail(
    `A POST to a link to unsubscribe at ${base} is answered ${status} by something that is not this service.`,
    `Let the proxy pass POST to ${UNSUBSCRIBE_PATH} through, without a login, a challenge or a CSRF check.`,
  );
}
