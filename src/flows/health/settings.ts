import { isIP } from "node:net";
import type { Config } from "../../config.ts";
import { isPublicAddress } from "../../net/address-guard.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

export type HealthSettings = Pick<
  Config,
  "publicUrl" | "publicIps" | "ownerEmail" | "delivery" | "serviceDomain" | "sources"
>;

/**
 * What the settings leave to their defaults that serves a first try and nothing else.
 * @param accountOwner the address that the first start has given the account; null where there is no account yet, or the
 *   database does not say
 */
export function settingsChecks(
  settings: HealthSettings,
  accountOwner: () => Promise<string | null>,
): Check[] {
  return [
    { name: "public url", run: () => publicUrl(settings), fix: "set PUBLIC_URL" },
    { name: "public ips", run: () => publicIps(settings), fix: "set PUBLIC_IPS" },
    { name: "owner", run: async () => owner(settings, await accountOwner()), fix: "set OWNER_EMAIL" },
    { name: "delivery", run: () => delivery(settings), fix: "set DELIVERY" },
  ];
}

function publicUrl({ publicUrl: text }: HealthSettings): Finding {
  const { protocol, hostname } = new URL(text);
  const fix = "set PUBLIC_URL to the https address of the API as recipients of mail reach it";
  if (isOwnMachine(hostname)) return warn(`${text}: links in mails lead to the reader's own machine`, fix);
  if (protocol === "http:") return warn(`${text}: keys and links go in the clear`, fix);
  return ok(text);
}

function isOwnMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(bare) !== 0) return bare === "::1" || bare === "::" || /^(?:127|0)\./.test(bare);
  return bare === "localhost" || bare.endsWith(".localhost");
}

function publicIps({ publicIps: ips }: HealthSettings): Finding {
  const within = ips.filter((ip) => !isPublicAddress(ip));
  if (within.length > 0)
    return warn(
      `${within.join(", ")}: the world knows no such address of ours, and our zone tells it to look there`,
      "set PUBLIC_IPS to the addresses that others see us by, which a provider may keep apart from the machine's own",
    );
  if (ips.length > 0) return ok(ips.join(", "));
  return warn(
    "PUBLIC_IPS is not set: ns. and mx. of our zone have no addresses, and spf. names nobody",
    "set PUBLIC_IPS to the addresses from which mail leaves and at which it arrives",
  );
}

function owner({ ownerEmail, sources }: HealthSettings, account: string | null): Finding {
  if (account !== null) return ownerOfAccount(ownerEmail, sources.has("OWNER_EMAIL"), account);
  if (sources.has("OWNER_EMAIL")) return ok(ownerEmail);
  return warn(
    `OWNER_EMAIL is not set: the account of a first start belongs to ${ownerEmail}, the one address that test mode delivers to`,
    "set OWNER_EMAIL to your own address before the first start",
  );
}

/** The setting is read at the first start: from then on the account's own owner counts. */
function ownerOfAccount(wanted: string, isSet: boolean, account: string): Finding {
  const fix = "change the owner in the database, as docs/operations.md shows";
  if (isSet && account !== wanted)
    return warn(`the account belongs to ${account}: OWNER_EMAIL is read at the first start alone`, fix);
  // With the default nobody has chosen it.
  if (!isSet && account === wanted)
    return warn(`the account belongs to ${account}, the one address that test mode delivers to`, fix);
  return ok(account);
}

function delivery({ delivery: mode }: HealthSettings): Finding {
  if (mode !== "capture") return ok(mode);
  return warn(
    "capture: mail is kept and marked delivered, none leaves this machine",
    "set SMTP_RELAY_URL, or DELIVERY=mx and SERVICE_DOMAIN, to send",
  );
}
