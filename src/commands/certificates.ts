import { certificateStates } from "../flows/certificates/states.ts";
import { retryFailedCertificates } from "../store/domains/certificates.ts";
import { defineCommand } from "./support/command.ts";
import { withDatabase } from "./support/database.ts";
import { EX_OK } from "./support/exit.ts";
import { field } from "./support/output.ts";

const COLUMNS = [
  field("names"),
  field("source"),
  field("expiresAt", "expires"),
  field("nextAt", "next"),
  field("lastError", "last error"),
];

/** Lists the certificates of the installation. */
export const certificates = defineCommand({
  name: "certificates",
  flags: {
    retry: { type: "boolean", help: "try failed orders again now instead of at the shown time" },
  },
  about: `Lists the certificates of SMTP and TLS_PORT: their names, their source, their end, when each is renewed or
tried again, and why the last try failed. After a refusal, first fix what it names: authorities limit failed
orders, usually to five an hour.`,
  example: "postrider certificates --retry",
  async run({ flags }, context) {
    const { config, clock, out } = context;
    await withDatabase(context, async (db) => {
      if (flags.retry) await db.write([retryFailedCertificates(clock.now())]);
      const states = await certificateStates(db, config, clock.now());
      const rows = states.map(({ names, source, expiresAt, nextAt, lastError }) => ({
        names,
        source,
        expiresAt: shown(expiresAt),
        nextAt: shown(nextAt),
        lastError: lastError?.text ?? null,
      }));
      out.rows(rows, COLUMNS);
    });
    return EX_OK;
  },
});

function shown(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
