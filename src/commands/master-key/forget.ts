import { openKept, sealKept } from "../../flows/secrets/kept-keys.ts";
import { readFact, recordFact } from "../../store/installation/facts.ts";
import { currentKeys } from "../../wiring/store/installation-keys.ts";
import { defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK, refused } from "../support/exit.ts";

/** Ends what a rotation has kept of earlier master keys. */
export const masterKeyForget = defineCommand({
  name: "master-key forget",
  flags: {
    yes: { type: "boolean", help: "end it; without this, only show what would end" },
    all: { type: "boolean", help: "also end unsubscribe links, which the law may require to work" },
  },
  about: `Shows the earlier master keys whose links still work, and with --yes ends that: tracked links, return paths, ids of
relays and cursors. Call it after \`postrider master-key rotate\` if the key before has leaked, because its holder can forge
these. Bounces of mail that was sent before are then not recognized, and its tracked links lead nowhere.

Unsubscribe links keep working, because a forged one needs the id of a message, and only unsubscribes its recipient.
--all ends them too. Running processes notice within 15 seconds.`,
  example: "postrider master-key forget",
  run({ flags }, context) {
    return withDatabase(context, async (db) => {
      const { clock, config, out } = context;
      const { box } = await currentKeys({ db, clock }, config);
      if (box.keys.length > 1)
        throw refused("the master key is being changed: call `postrider master-key rotate` first");
      const kept = openKept(box, (await readFact(db, "kept_keys")) ?? undefined, clock.now());
      const left = flags.all ? [] : kept.map((one) => ({ ...one, keys: onlyUnsubscribing(one.keys) }));
      if (flags.yes) await db.write([recordFact("kept_keys", left.length === 0 ? "" : sealKept(box, left))]);
      const shown = kept.map(({ id, until, keys }) => ({
        id,
        until: new Date(until).toISOString(),
        kept: Object.keys(keys),
      }));
      const lines = shown.map(
        ({ until, kept: names }) => `A key whose links work until ${until}: ${names.join(", ")}.`,
      );
      const done = flags.yes ? "This has ended." : "Use --yes to end it.";
      out.record(
        { keys: shown, ended: flags.yes },
        kept.length === 0 ? "No links of an earlier master key work." : [...lines, done].join("\n"),
      );
      return EX_OK;
    });
  },
});

function onlyUnsubscribing({ unsubscribe }: { unsubscribe?: string }): { unsubscribe?: string } {
  return unsubscribe === undefined ? {} : { unsubscribe };
}
