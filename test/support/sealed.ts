import { makingKey } from "../../src/core/crypto/key-ring.ts";
import { seal } from "../../src/core/crypto/secretbox.ts";
import { masterKeyOf, opens } from "../../src/flows/secrets/master-key.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import { sealedRows } from "../../src/store/installation/sealed-rows.ts";
import { SEALED } from "../../src/store/installation/secrets.ts";

/** Maximum number of rows of a table that a test has. */
const MANY = 10_000;

/** Returns how many secrets of each table any of these master keys opens, and how many none does. */
export async function sealedBy(
  db: Db,
  ...masterKeys: readonly string[]
): Promise<{ opened: Record<string, number>; lost: number }> {
  const boxes = masterKeys.map((key) => masterKeyOf(key).derived.box);
  const opened: Record<string, number> = {};
  let lost = 0;
  for (const sealed of SEALED) {
    const rows = await sealedRows(db, sealed, null, MANY);
    const values = rows.flatMap((row) => row.values.filter((value) => value !== null));
    const own = values.filter((value) => boxes.some((box) => opens(box, value)));
    opened[sealed.table] = own.length;
    lost += values.length - own.length;
  }
  return { opened, lost };
}

/** Returns statements that store secrets which only an order of a certificate makes. */
export function certificateSecrets(masterKey: string): Statement[] {
  const box = masterKeyOf(masterKey).derived.box;
  const key = seal(makingKey(box), "a private key");
  return [
    {
      sql: "INSERT INTO acme_accounts (directory, private_key, contact, created_at) VALUES ('https://ca.test', ?, 'a@b.test', 1)",
      args: [seal(box, "an account's key")],
    },
    {
      sql: `INSERT INTO certificates (id, directory, names, chain, private_key, issued_at, not_after, served_from, order_key, due_at)
        VALUES ('service', 'https://ca.test', '[]', 'a chain', ?1, 1, 2, 1, ?1, ?2)`,
      args: [key, Number.MAX_SAFE_INTEGER],
    },
  ];
}
