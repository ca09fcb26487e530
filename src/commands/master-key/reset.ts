import { randomBytes } from "node:crypto";
import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type MasterKey, masterKeyOf } from "../../flows/secrets/master-key.ts";
import { namesOf } from "../../flows/secrets/processes.ts";
import type { Lost, ResetDeps } from "../../flows/secrets/lost-rows.ts";
import { endReset, replaceLost } from "../../flows/secrets/reset.ts";
import { LEASE_MS } from "../../flows/sweep/instance.ts";
import { generateDkimKey } from "../../mail/auth/dkim.ts";
import type { Db } from "../../store/engine/client.ts";
import { type Fact, readFacts } from "../../store/installation/facts.ts";
import { listInstances } from "../../store/installation/instances.ts";
import { hasMasterKey, heldMasterKeys } from "../../wiring/store/master-key.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK, refused } from "../support/exit.ts";

/** Replaces the secrets of a lost master key. */
export const masterKeyReset = defineCommand({
  name: "master-key reset",
  flags: { yes: { type: "boolean", help: "replace them; without this, only show what is lost" } },
  about: `For a master key that is lost. Shows every secret that MASTER_KEY or master.key in DATA_DIR does not open, and with
--yes replaces it: a new key signs for each domain, each webhook gets a new secret, relays wait for their login. Prints
what to publish, which webhook secrets to replace and which logins to enter. Without a key in the settings, --yes makes
master.key. Delegated domains, certificates and the ACME account need nothing.

Look for the key first. A process that still runs has it in memory, so stop none: MASTER_KEY is in /proc/PID/environ. If the
key opens every secret, nothing is changed. If it is interrupted, call it again.`,
  example: "postrider master-key reset",
  run({ flags }, context) {
    return withDatabase(context, async (db) => {
      const { clock, config, out } = context;
      const act = flags.yes === true;
      const facts = await readFacts(db);
      const [key, ...others] = resetKeys(config, facts, act);
      const boxKey = { keys: [key.derived.box, ...others.map(({ derived }) => derived.box)] } as const;
      const deps: Omit<ResetDeps, "act"> = {
        db,
        clock,
        boxKey,
        serviceDomain: config.serviceDomain,
        generateDkimKey: (algorithm) => generateDkimKey(algorithm),
      };
      const isOver = facts.master_key === key.id && (facts.master_key_rotation ?? "") === "";
      if (act) await requireLost({ ...deps, act: false }, isOver);
      if (act) await requireStopped(db, clock);
      let lost = 0;
      for await (const one of replaceLost({ ...deps, act })) {
        lost++;
        show(context, one);
      }
      if (act) await endReset({ ...deps, act }, key.id);
      const done = act
        ? "They were replaced. Start the service, and make a backup."
        : "Use --yes to replace them.";
      out.record(
        { lost, replaced: act },
        lost === 0 ? "The master key opens every secret." : `${lost} secrets are lost. ${done}`,
      );
      return EX_OK;
    });
  },
});

/** Returns the keys of this process, first the one to seal with. */
function resetKeys(
  config: Config,
  facts: Partial<Record<Fact, string>>,
  act: boolean,
): [MasterKey, ...MasterKey[]] {
  // Without --yes nothing is made, and a new key stands for the one that would be.
  const texts =
    hasMasterKey(config) || act ? heldMasterKeys(config, false) : [randomBytes(32).toString("hex")];
  const held = texts.map(masterKeyOf);
  const key = held.find(({ id }) => id === facts.master_key) ?? held[0];
  if (key === undefined) throw refused("there is no master key");
  return [key, ...held.filter((other) => other !== key)];
}

async function requireLost(deps: ResetDeps, isOver: boolean): Promise<void> {
  const { done } = await replaceLost(deps).next();
  if (done && isOver)
    throw refused("the master key opens every secret, so nothing is lost and nothing was changed");
}

async function requireStopped(db: Db, clock: Clock): Promise<void> {
  const running = (await listInstances(db)).filter(({ heartbeatAt }) => clock.now() - heartbeatAt < LEASE_MS);
  if (running.length === 0) return;
  throw refused(
    `these processes run, or did a minute ago, and may have the lost key in memory: ${namesOf(running)}. Look for it there, at last stop them, and call this again a minute later`,
  );
}

function show({ out }: Context, { kind, id, name, project, todo, ...more }: Lost): void {
  const what = [name, id].filter((text) => text !== "").join(" ");
  out.record({ kind, id, name, project, todo, ...more }, `${kind}${what === "" ? "" : ` ${what}`}: ${todo}`);
}
