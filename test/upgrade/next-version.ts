import { type Migration, MIGRATIONS } from "../../src/store/engine/migrations.ts";

/**
 * Loaded before the program. With SCHEMA=next in its environment, the program is one of the next minor version, and with
 * SCHEMA=broken one whose step fails where a project has two messages.
 */

const NEWEST = Math.max(...MIGRATIONS.map(({ version }) => version));

/** A column of a large table, with what keeps it true while older programs write, and what fills old rows. */
export const NEXT: Migration = {
  version: NEWEST + 1,
  name: "next",
  worksWith: NEWEST,
  sql: `ALTER TABLE messages ADD COLUMN made_on INTEGER;
CREATE TRIGGER messages_made_on AFTER INSERT ON messages WHEN NEW.made_on IS NULL
BEGIN
  UPDATE messages SET made_on = NEW.created_at / 86400000 WHERE id = NEW.id;
END;
`,
  fill: [
    {
      table: "messages",
      by: "id",
      sql: "UPDATE messages SET made_on = created_at / 86400000 WHERE id BETWEEN ? AND ? AND made_on IS NULL",
    },
  ],
};

const BROKEN: Migration = {
  version: NEWEST + 1,
  name: "next",
  worksWith: NEWEST,
  sql: "CREATE UNIQUE INDEX one_message ON messages (sender_id);",
};

if (Bun.env.SCHEMA === "broken") (MIGRATIONS as Migration[]).push(BROKEN);
if (Bun.env.SCHEMA === "next") (MIGRATIONS as Migration[]).push(NEXT);
