import { recordFact } from "../../store/installation/facts.ts";
import { AFTER_ALL, countHeld, dropHeld, releaseHeld } from "../../store/messages/held-by-restore.ts";
import { defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK, usage } from "../support/exit.ts";
import { heldText } from "./held-text.ts";

/** Lets go what a restore holds. */
export const releaseHeldMail = defineCommand({
  name: "release-held",
  flags: {
    yes: { type: "boolean", help: "let it go; without this, only show what would be" },
    before: { type: "string", value: "TIME", help: "only what was due before this time (ISO 8601)" },
    drop: { type: "boolean", help: "end it instead: recipients are failed, pushes given up" },
  },
  about: `Shows what a restore holds, and with --yes lets it go: what was due leaves at once, scheduled mail at its time. Mail
that was sent between the backup and the restore is sent a second time, so use --drop with --before for that time.`,
  example: "postrider release-held --before 2026-11-28T03:00:00Z --drop --yes",
  run({ flags }, context) {
    const before = timeOf(flags.before);
    return withDatabase(context, async (db) => {
      const held = await countHeld(db, before);
      const now = context.clock.now();
      if (flags.yes === true) {
        await (flags.drop === true ? dropHeld(db, before, now) : releaseHeld(db, before));
        const left = await countHeld(db, AFTER_ALL);
        if (left.recipients + left.pushes === 0) await db.write([recordFact("held", "")]);
      }
      const done =
        flags.yes === true ? (flags.drop === true ? "Dropped." : "Released.") : "Use --yes to let it go.";
      context.out.record(
        { ...held, released: flags.yes === true },
        `${heldText(held)} ${held.firstDueAt === null ? "" : done}`.trim(),
      );
      return EX_OK;
    });
  },
});

function timeOf(text: string | undefined): number {
  if (text === undefined) return AFTER_ALL;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw usage("--before must be a time such as 2026-11-28T03:00:00Z");
  return time;
}
