import { zoneFile } from "../flows/zone/service-zone.ts";
import { defineCommand } from "./support/command.ts";
import { withDatabase } from "./support/database.ts";
import { CommandError, EX_CONFIG, EX_OK } from "./support/exit.ts";

/** Prints the service's own zone. */
export const dnsZone = defineCommand({
  name: "dns zone",
  flags: {},
  plain: true,
  about: `Prints the zone of SERVICE_DOMAIN as a zone file (RFC 1035 §5), for your own name server. Hosts and
policies come from the settings, DKIM keys from the database. PUBLIC_IPS must be set.`,
  example: "PUBLIC_IPS=192.0.2.1 postrider dns zone",
  async run(_input, context) {
    const { config, clock, out } = context;
    if (config.publicIps.length === 0)
      throw new CommandError(
        EX_CONFIG,
        "PUBLIC_IPS is not set, so the hosts of the zone would have no addresses",
      );
    await withDatabase(context, async (db) => {
      for await (const lines of zoneFile({ db, clock }, config)) out.plain(lines);
    });
    return EX_OK;
  },
});
