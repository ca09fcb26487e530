import { watchFacts } from "../flows/notices/watch.ts";
import { laneLimits } from "./delivery.ts";
import type { Chore } from "./process/loop.ts";
import { failedMigration } from "./store/failed-migration.ts";
import type { Services } from "./services.ts";

/** Returns the chores that raise, end and send notices. */
export function noticeChores(services: Services): readonly Chore[] {
  const { config } = services;
  const facts = {
    ...services,
    ...laneLimits(config),
    failedMigration: () => failedMigration(config.dataDir),
  };
  return [{ name: "notices", turn: watchFacts(facts) }];
}
