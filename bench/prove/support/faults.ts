/** Faults of a service's surroundings, each for a while, as a soak makes them. */
import type { TestRedis } from "../../../test/support/redis.ts";
import { type Ground, HOOK } from "./service.ts";

/** A fault: it resolves when it is over. */
export interface NamedFault {
  name: string;
  run(): Promise<void>;
}

const SHORT_MS = 3000;
/** Longer than the webhook timeout that a soak sets. */
const HOOK_MS = 5000;

async function during(ms: number, begin: () => void, end: () => void): Promise<void> {
  begin();
  await Bun.sleep(ms);
  end();
}

/** Faults of a real database server, if the run has one. */
function databaseFaults({ database: { sqld } }: Ground): NamedFault[] {
  if (sqld === null) return [];
  return [
    {
      name: "database server killed",
      async run() {
        await sqld.kill();
        await Bun.sleep(Math.random() * SHORT_MS);
        await sqld.restart();
      },
    },
    { name: "database server frozen", run: () => during(SHORT_MS, sqld.freeze, sqld.thaw) },
  ];
}

/** All faults except a kill: the process survives them. */
export function surroundingFaults(ground: Ground, redis: TestRedis): NamedFault[] {
  const { sink, hooks, dns } = ground;
  const take = () => sink.set({ kind: "take" });
  const answer = () => hooks.set({ kind: "ok" }, HOOK);
  const know = () => {
    dns.behave("answer");
    dns.release();
  };
  return [
    {
      name: "sink refuses",
      run: () => during(SHORT_MS, () => sink.set({ kind: "refuse", reply: "451 4.3.0 Later" }), take),
    },
    { name: "sink hangs", run: () => during(SHORT_MS, () => sink.set({ kind: "hang" }), take) },
    { name: "sink cuts", run: () => during(SHORT_MS, () => sink.set({ kind: "cut" }), take) },
    { name: "webhook hangs", run: () => during(HOOK_MS, () => hooks.set({ kind: "hang" }, HOOK), answer) },
    {
      name: "webhook says 500",
      run: () => during(SHORT_MS, () => hooks.set({ kind: "status", status: 500 }, HOOK), answer),
    },
    { name: "DNS slow", run: () => during(SHORT_MS, () => dns.behave("hold"), know) },
    { name: "DNS fails", run: () => during(SHORT_MS, () => dns.behave("servfail"), know) },
    { name: "Redis restarts empty", run: () => redis.restart() },
    { name: "Redis frozen", run: () => during(SHORT_MS, redis.freeze, redis.thaw) },
    ...databaseFaults(ground),
  ];
}

/** `kill -9` and a new start. */
export function killFault({ service }: Ground, env: Record<string, string>): NamedFault {
  return {
    name: "kill -9",
    async run() {
      await service.kill();
      await service.start({ env });
    },
  };
}
