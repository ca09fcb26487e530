import { reachableAddress } from "../../../core/networks.ts";
import { findDane } from "../../../net/dane.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import { shortTimeouts } from "../../../smtp/client/delivery.ts";
import { openSession } from "../../../smtp/client/open-session.ts";
import { type Check, fail, type Finding, ok, warn } from "../check.ts";
import type { ListenerParts } from "./listener.ts";

/** Port of mail between servers, which the TLSA records are for. */
const SMTP_PORT = 25;
/** Timeouts of the connection and of each reply, milliseconds. Together they are less than the limit of a check. */
const [CONNECT_MS, REPLY_MS] = [500, 700];

/**
 * Checks the TLSA records of our MX host, which only an operator with a signed zone can publish: our name server signs none. Senders that
 * know DANE do not deliver if the records are not of our certificate (RFC 7672 §2.2).
 */
export function tlsaCheck(parts: ListenerParts & { resolver: Resolver }): Check {
  return { name: "our tlsa", run: () => look(parts), fix: "Check that DNS_SERVERS are reachable." };
}

async function look(parts: ListenerParts & { resolver: Resolver }): Promise<Finding> {
  const { resolver, hostname, serviceDomain } = parts;
  const name = `_${SMTP_PORT}._tcp.${hostname}`;
  const found = await resolver.resolve(name, "TLSA", { fresh: true });
  if (found.status === "failure") throw new Error(`${name} TLSA cannot be looked up: ${found.reason}`);
  if (found.status !== "ok")
    return ok("There are no TLSA records, as there should be none in a zone without DNSSEC.");
  if (!found.authentic)
    return warn(
      `There are TLSA records at ${name}, but these name servers do not confirm that the zone is signed. Without DNSSEC they have no effect.`,
      "Take them out, or sign the zone and set DNS_SERVERS to a resolver that validates.",
    );
  const [dane] = await findDane(resolver, serviceDomain, [hostname], SMTP_PORT);
  if (dane?.kind !== "demand") return ok(`The TLSA records at ${name} demand no certificate.`);
  const { host, port, clock } = parts;
  const opening = await openSession(
    { clock },
    {
      host: hostname,
      ip: reachableAddress(host),
      port,
      tls: "verified",
      implicitTls: false,
      ehloName: hostname,
      timeouts: shortTimeouts(CONNECT_MS, REPLY_MS),
      security: { tls: "verified", dane, policy: "DANE" },
    },
    [],
  );
  if (opening.kind === "open") {
    opening.session.transport.close("done");
    return ok("The TLSA records are of the certificate that the listener shows.");
  }
  const { result } = opening;
  return fail(
    `The TLSA records at ${name} do not fit the listener, so senders that know DANE do not deliver: ${result.kind === "trouble" ? result.reason : result.kind}.`,
    "Publish the record of the present certificate, or take the records out until their TTL is over.",
  );
}
