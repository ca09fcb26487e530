import { Database } from "bun:sqlite";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { recipient, textTo } from "./message.ts";
import { DOMAIN, type Prepared, startService } from "./service.ts";

/** Messages sent in one request. */
const BATCH = 100;
/** Messages that are really accepted. The rest are copies in the database, which takes seconds instead of minutes. */
const ACCEPTED = 1000;

/** Columns that name a message, by table; a copy changes them. */
const TABLES: Readonly<Record<string, string>> = {
  messages: "id",
  message_content: "message_id",
  recipients: "message_id",
  events: "message_id",
};

/**
 * Puts `count` due messages of 1 KB to recipients at this many domains into a data folder. Resolves with the folder's
 * new name, so that output of the accepting process is not taken for output of the next one.
 */
export async function fillQueue(
  folder: string,
  prepared: Prepared,
  count: number,
  domains: number,
): Promise<string> {
  const { child, url } = await startService(folder, { ROLES: "api" });
  for (let first = 0; first < Math.min(count, ACCEPTED); first += BATCH) {
    const emails = Array.from({ length: BATCH }, (_, n) => {
      const to = recipient(first + n, domains);
      return {
        from: { email: `news@${DOMAIN}` },
        to: [{ email: to }],
        subject: "Measured",
        text: textTo(to),
      };
    });
    const answer = await fetch(`${url}/v1/emails/batch`, {
      method: "POST",
      headers: { authorization: `Bearer ${prepared.key}`, "content-type": "application/json" },
      body: JSON.stringify({ emails }),
    });
    if (answer.status >= 300) throw new Error(`a batch was answered with ${await answer.text()}`);
  }
  await child.end();
  const filled = `${folder}-filled`;
  renameSync(folder, filled);
  multiply(filled, Math.max(0, Math.round(count / ACCEPTED) - 1));
  return filled;
}

/** Adds this many copies of each message. */
function multiply(folder: string, copies: number): void {
  using database = new Database(join(folder, "postrider.db"));
  database.run("PRAGMA foreign_keys = OFF");
  database.transaction(() => {
    // The copies skip the search index, because the bench does not measure it.
    database.run("UPDATE messages SET position = 0 WHERE position IS NULL");
    for (const [table, id] of Object.entries(TABLES)) {
      const columns = database
        .query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`)
        .all()
        .map(({ name }) => name);
      // The last five characters of an id are random: a number in their place makes a new id.
      const values = columns.map((name) =>
        name === id ? `substr(s.${id}, 1, 25) || printf('%05x', k.n)` : `s.${name}`,
      );
      database.run(
        `WITH RECURSIVE k (n) AS (SELECT 1 WHERE ?1 >= 1 UNION ALL SELECT n + 1 FROM k WHERE n < ?1)
          INSERT INTO ${table} (${columns.join(", ")}) SELECT ${values.join(", ")} FROM ${table} s, k`,
        [copies],
      );
    }
  })();
}

/** Moves all waiting recipients to one domain. */
export function moveTo(folder: string, domain: string): void {
  using database = new Database(join(folder, "postrider.db"));
  database.run("UPDATE recipients SET domain = ?, email = 'person@' || ?", [domain, domain]);
}
