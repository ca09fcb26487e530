import type { Config } from "../../config.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import { linksHost } from "../../core/own-names.ts";
import { hostsDomains } from "../../flows/certificates/domain-hosts.ts";
import type { LinkFaultOf } from "../../flows/health/domains/domains.ts";
import { openSigners } from "../../flows/health/domains/signers.ts";
import type { ReceiverView } from "../../flows/health/domains/warnings.ts";
import { linkFault } from "../../flows/health/outside/links.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { findCertificate } from "../../store/domains/certificates.ts";
import type { Store } from "../../store/engine/client.ts";

interface ViewParts extends Store {
  config: Config;
  resolver: Resolver;
  /** Opens the private keys of domains. */
  boxKey: Key;
}

/** Makes what shows a domain's mail as receivers see it; null if no mail leaves. */
export function receiverView(parts: ViewParts): ReceiverView | null {
  const { config, db, boxKey } = parts;
  if (config.delivery === "capture") return null;
  // Without a cache, because a record may have been published a second ago.
  const resolver: Resolver = {
    resolve: (name, type) => parts.resolver.resolve(name, type, { fresh: true }),
  };
  return {
    resolver,
    signersOf: (domain) => openSigners(db, boxKey, domain),
    linkFaultOf: hostsDomains(config) ? ownLinkFault({ ...parts, resolver }) : null,
  };
}

/** Until a domain's host has a certificate, its links lead to PUBLIC_URL. A host that leads elsewhere than here is not connected to. */
function ownLinkFault({ config, clock, db, resolver }: ViewParts): LinkFaultOf {
  const mayReach = (ip: string) => config.publicIps.includes(ip);
  return async ({ id, name }) => {
    const issued = (await findCertificate(db, id))?.issued;
    if (issued == null || issued.servedFrom > clock.now()) return null;
    return linkFault({ clock, resolver, mayReach }, `https://${linksHost(name)}`);
  };
}
