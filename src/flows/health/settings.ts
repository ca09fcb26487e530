import { isIP } from "node:net";
import type { Config } from "../../config.ts";
import { isPublicAddress } from "../../net/address-guard.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

export type HealthSettings = Pick<
  Config,
  | "publicUrl"
  | "publicIps"
  | "ownerEmail"
  | "delivery"
  | "serviceDomain"
  | "retentionEventDays"
  | "sources"
  | "unread"
>;

/**
 * Checks for settings that are misspelt, or whose default is only good for a first try.
 * @param accountOwner returns the owner's address; null if there is no account yet, or the database cannot be read
 */
export function settingsChecks(
  settings: HealthSettings,
  accountOwner: () => Promise<string | null>,
): Check[] {
  return [
    { name: "variables", run: () => variables(settings), fix: "Rename or unset the variable." },
    { name: "public url", run: () => publicUrl(settings), fix: "Set PUBLIC_URL." },
    { name: "public ips", run: () => publicIps(settings), fix: "Set PUBLIC_IPS." },
    { name: "owner", run: async () => owner(settings, await accountOwner()), fix: "Set OWNER_EMAIL." },
    { name: "delivery", run: () => delivery(settings), fix: "Set DELIVERY." },
    { name: "unsubscribe links", run: () => unsubscribeLinks(settings), fix: "Set RETENTION_EVENT_DAYS." },
  ];
}

function variables({ unread }: HealthSettings): Finding {
  if (unread.length === 0) return ok("No variable looks like a misspelt setting.");
  const names = unread.map(({ name, setting }) => `${name} (did you mean ${setting}?)`).join(", ");
  return warn(`These variables are not settings and have no effect: ${names}.`, "Rename or unset them.");
}

function publicUrl({ publicUrl: text, sources }: HealthSettings): Finding {
  const { protocol, hostname } = new URL(text);
  const fix = "Set it to the public https address of the API.";
  if (isOwnMachine(hostname)) {
    const state = sources.has("PUBLIC_URL") ? `is ${text}` : "is not set";
    return warn(`PUBLIC_URL ${state}, so links in messages point to localhost.`, fix);
  }
  if (protocol === "http:")
    return warn(`PUBLIC_URL is ${text}, so keys and links travel without encryption.`, fix);
  return ok(text);
}

/** Returns whether a host of a URL is the machine itself. */
export function isOwnMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(bare) !== 0) return bare === "::1" || bare === "::" || /^(?:127|0)\./.test(bare);
  return bare === "localhost" || bare.endsWith(".localhost");
}

function publicIps({ publicIps: ips }: HealthSettings): Finding {
  const within = ips.filter((ip) => !isPublicAddress(ip));
  if (within.length > 0)
    return warn(
      `PUBLIC_IPS holds private addresses (${within.join(", ")}), which our zone publishes and other hosts cannot reach.`,
      "Set it to the public addresses. Behind NAT they differ from the machine's own addresses.",
    );
  if (ips.length > 0) return ok(ips.join(", "));
  return warn(
    "PUBLIC_IPS is not set, so our zone has no addresses for ns. and mx., and its SPF record allows no host.",
    "Set it to the public addresses that mail leaves from and arrives at.",
  );
}

function owner({ ownerEmail, sources }: HealthSettings, account: string | null): Finding {
  if (account !== null) return ownerOfAccount(ownerEmail, sources.has("OWNER_EMAIL"), account);
  if (sources.has("OWNER_EMAIL")) return ok(ownerEmail);
  return warn(
    `OWNER_EMAIL is not set, so the first account will belong to ${ownerEmail}, the only address that test mode delivers to.`,
    "Set it to your own address before the first start.",
  );
}

/** Checks the owner in the database, because OWNER_EMAIL is only read at the first start. */
function ownerOfAccount(wanted: string, isSet: boolean, account: string): Finding {
  const fix = "Change the owner with PATCH /v1/account.";
  if (isSet && account !== wanted)
    return warn(
      `The account belongs to ${account}, not to ${wanted}, because OWNER_EMAIL is only read at the first start.`,
      fix,
    );
  // The address is the default, which the operator did not choose.
  if (!isSet && account === wanted)
    return warn(`The account belongs to ${account}, the only address that test mode delivers to.`, fix);
  return ok(account);
}

/** Days for which links to unsubscribe must work: CASL §11(2) asks for 60, CAN-SPAM for 30. */
const LINK_DAYS = 60;

function unsubscribeLinks({ retentionEventDays: days }: HealthSettings): Finding {
  if (days === 0 || days >= LINK_DAYS)
    return ok(days === 0 ? "They work for ever." : `They work for ${days} days.`);
  return warn(
    `Messages are deleted after ${days} days (RETENTION_EVENT_DAYS), and their unsubscribe links then stop working.`,
    `Set it to ${LINK_DAYS} or more: laws require links that work for 30 to 60 days.`,
  );
}

function delivery({ delivery: mode }: HealthSettings): Finding {
  if (mode !== "capture") return ok(mode);
  return warn(
    "DELIVERY is capture, so messages are stored and marked delivered, and none leaves this machine.",
    "To send, set SMTP_RELAY_URL, or SERVICE_DOMAIN and DELIVERY=mx.",
  );
}
