import { organizationalDomain } from "../core/public-suffix.ts";
import { watchBlockLists } from "../flows/notices/listed.ts";
import { sendNotices } from "../flows/notices/send.ts";
import { watchFacts } from "../flows/notices/watch.ts";
import { laneLimits, sendingAddresses } from "./delivery.ts";
import type { Chore } from "./process/loop.ts";
import { failedMigration } from "./store/failed-migration.ts";
import type { Services } from "./services.ts";

/** Returns the chores that raise, end and send notices. */
export function noticeChores(services: Services): readonly Chore[] {
  const { config, keys } = services;
  const watch = watchFacts({
    ...services,
    ...laneLimits(config),
    failedMigration: () => failedMigration(config.dataDir),
  });
  const mailing = { ...services, captures: config.delivery === "capture", linkKey: keys.file };
  const turn = async () => {
    await watch();
    await sendNotices(mailing);
  };
  return [
    { name: "notices", turn },
    ...(config.delivery === "mx" ? [{ name: "block-lists", turn: listWatch(services) }] : []),
  ];
}

function listWatch({ config, ...services }: Services): () => Promise<void> {
  const addresses = sendingAddresses(config).map(({ ip }) => ip);
  return watchBlockLists({ ...services, addresses, domains: [organizationalDomain(config.serviceDomain)] });
}
