/**
 * The keys that are derived from the master key, and what a rotation does to what each has made. `resealed`: the rotation
 * makes it again under the new key. `kept`: it stays valid for `KEPT_DAYS`, unless the operator ends that. `ends`: it is
 * refused when the rotation is over.
 */
export const DERIVED_KEYS = {
  /** Seals secrets in the database: `SEALED` lists them. */
  box: "resealed",
  /** Encrypts backups. A backup opens with the master key of its time alone. */
  backup: "ends",
  /** Authenticates unsubscribe links and addresses. */
  unsubscribe: "kept",
  /** Authenticates the tokens in return paths, and the Message-IDs of copies. */
  verp: "kept",
  /** Authenticates the tokens of open and click tracking. */
  tracking: "kept",
  /** Authenticates the ids that relays give back in their events. */
  relay: "kept",
  /** Authenticates the cursors of lists. */
  cursor: "kept",
  /** Seals the cookies of the dashboard's sessions, which last 12 hours. */
  session: "ends",
  /** Seals the download links of Resend's API, which last one hour, and the links by which a message is approved. */
  file: "ends",
} as const;

export type Purpose = keyof typeof DERIVED_KEYS;

/** Days after a rotation in which links and tokens of the key before it work. Mail is read late, and must stay unsubscribable. */
export const KEPT_DAYS = 400;

/** A table with sealed columns. */
export interface Sealed {
  table: string;
  /** Columns of its primary key. */
  key: readonly string[];
  columns: readonly string[];
  /** The files that seal them. */
  sealedBy: readonly string[];
  /** Condition of the rows that are sealed. Left out: all of them, unless they are NULL. */
  where?: string;
}

/** Every column whose values the key `box` seals. A rotation seals them again, and a reset replaces them. */
export const SEALED: readonly Sealed[] = [
  {
    table: "dkim_keys",
    key: ["token"],
    columns: ["private_key"],
    sealedBy: ["flows/records/keys.ts"],
  },
  {
    table: "webhooks",
    key: ["id"],
    columns: ["secret", "previous_secret"],
    sealedBy: ["flows/webhooks/webhooks.ts"],
  },
  {
    table: "routes",
    key: ["id"],
    columns: ["sealed_relay_url", "sealed_proof"],
    sealedBy: ["http/routes/projects/out-routes.ts", "flows/relays/proof.ts"],
  },
  {
    table: "certificates",
    key: ["id"],
    columns: ["private_key", "order_key"],
    sealedBy: ["flows/certificates/order.ts"],
  },
  {
    table: "acme_accounts",
    key: ["directory"],
    columns: ["private_key"],
    sealedBy: ["flows/certificates/account.ts"],
  },
  {
    table: "erasures",
    key: ["id"],
    columns: ["sealed_email"],
    sealedBy: ["http/routes/erasures.ts"],
  },
  {
    table: "idempotency",
    key: ["scope", "endpoint", "key"],
    columns: ["body"],
    sealedBy: ["http/access/idempotency.ts"],
    // An answer with a secret has a second hash behind the first.
    where: "length(body_hash) > 64",
  },
  {
    table: "installation",
    key: ["name"],
    columns: ["value"],
    sealedBy: ["flows/secrets/kept-keys.ts"],
    where: "name = 'kept_keys' AND value <> ''",
  },
];

/** Returns the columns of a table that are sealed in every row. */
export function sealedColumns(table: string): readonly string[] {
  return SEALED.find((one) => one.table === table && one.where === undefined)?.columns ?? [];
}
