import { idCeiling } from "../../core/ids.ts";
import { changesRow, type Db, type Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { requireGuard, requireRoom } from "../engine/guards.ts";

/** Maximum number of forward addresses of a project, with those that were removed today. */
export const MAX_FORWARD_ADDRESSES = 100;
/** Maximum number of links that an address gets on a UTC day, from all projects. */
export const MAX_LINKS_TO_ADDRESS = 3;
/** Maximum number of links that a project mails on a UTC day. */
export const MAX_LINKS_OF_PROJECT = 20;

/** An address that rules may forward to once its owner has confirmed that. Times in milliseconds. */
export interface ForwardAddress {
  id: string;
  senderId: string;
  email: string;
  emailKey: string;
  /** Null: its owner has not confirmed it. */
  confirmedAt: number | null;
  /** When the last link was mailed. */
  askedAt: number;
  /** Links mailed on that UTC day. */
  mails: number;
  /** Null unless it was removed. */
  removedAt: number | null;
  createdAt: number;
}

const ADDRESSES = table<ForwardAddress>("forward_addresses", {
  id: plain("id"),
  senderId: plain("sender_id"),
  email: plain("email"),
  emailKey: plain("email_key"),
  confirmedAt: plain("confirmed_at"),
  askedAt: plain("asked_at"),
  mails: plain("mails"),
  removedAt: plain("removed_at"),
  createdAt: plain("created_at"),
});

/** Returns the project's row of an address, also a removed one; null if there is none. */
export function rowOfAddress(db: Db, senderId: string, emailKey: string): Promise<ForwardAddress | null> {
  return ADDRESSES.first(db, "WHERE sender_id = ? AND email_key = ?", [senderId, emailKey]);
}

/** Returns a forward address of the project; null if it has none with that id. */
export function getForwardAddress(db: Db, senderId: string, id: string): Promise<ForwardAddress | null> {
  return ADDRESSES.first(db, "WHERE sender_id = ? AND id = ? AND removed_at IS NULL", [senderId, id]);
}

/** Returns the project's confirmed address with that key; null if it has none. */
export function confirmedAddress(db: Db, senderId: string, emailKey: string): Promise<ForwardAddress | null> {
  const where = "WHERE sender_id = ? AND email_key = ? AND removed_at IS NULL AND confirmed_at IS NOT NULL";
  return ADDRESSES.first(db, where, [senderId, emailKey]);
}

/** Returns at most `take` forward addresses of the project, newest first, with ids below `after`. */
export function listForwardAddresses(
  db: Db,
  senderId: string,
  after: string | null,
  take: number,
): Promise<ForwardAddress[]> {
  const page = "WHERE sender_id = ? AND removed_at IS NULL AND id < ? ORDER BY id DESC LIMIT ?";
  return ADDRESSES.all(db, page, [senderId, after ?? idCeiling("fwd"), take]);
}

/**
 * Returns the statements that store an address to which a link is mailed now. They break the guards `too_many_links` and
 * `too_many_records`, and `changed_since_read` if the row is not `before` any more.
 * @param dayStart start of the UTC day, milliseconds
 */
export function askForwardAddress(
  address: ForwardAddress,
  before: ForwardAddress | null,
  dayStart: number,
): Statement[] {
  const { senderId, emailKey } = address;
  const isNew = before?.id !== address.id;
  const mailed = (column: string) =>
    `(SELECT COALESCE(SUM(mails), 0) FROM forward_addresses WHERE ${column} = ? AND asked_at >= ?) < ?`;
  return [
    requireGuard("changed_since_read", {
      sql: `(SELECT asked_at || ' ' || COALESCE(removed_at, '') || ' ' || COALESCE(confirmed_at, '')
        FROM forward_addresses WHERE sender_id = ? AND email_key = ?) IS ?`,
      args: [senderId, emailKey, before === null ? null : stateOf(before)],
    }),
    requireGuard("too_many_links", {
      sql: `${mailed("email_key")} AND ${mailed("sender_id")}`,
      args: [emailKey, dayStart, MAX_LINKS_TO_ADDRESS, senderId, dayStart, MAX_LINKS_OF_PROJECT],
    }),
    ...(isNew
      ? [
          // A removed row makes room for the new one.
          {
            sql: "DELETE FROM forward_addresses WHERE sender_id = ? AND email_key = ?",
            args: [senderId, emailKey],
          },
          requireRoom("forward_addresses WHERE sender_id = ?", senderId, MAX_FORWARD_ADDRESSES),
          ADDRESSES.insert(address),
        ]
      : [
          {
            sql: "UPDATE forward_addresses SET asked_at = ?, mails = ? WHERE id = ?",
            args: [address.askedAt, address.mails, address.id],
          },
        ]),
  ];
}

function stateOf({ askedAt, removedAt, confirmedAt }: ForwardAddress): string {
  return `${askedAt} ${removedAt ?? ""} ${confirmedAt ?? ""}`;
}

/** Confirms an address. Does nothing if it is confirmed, or was removed. */
export async function confirmForwardAddress(
  db: Db,
  senderId: string,
  id: string,
  now: number,
): Promise<void> {
  const sql = `UPDATE forward_addresses SET confirmed_at = ?
    WHERE sender_id = ? AND id = ? AND removed_at IS NULL AND confirmed_at IS NULL`;
  await db.write([{ sql, args: [now, senderId, id] }]);
}

/** Removes an address. Its links still count. Returns false if the project has none with that id. */
export function removeForwardAddress(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  const sql =
    "UPDATE forward_addresses SET removed_at = ? WHERE sender_id = ? AND id = ? AND removed_at IS NULL";
  return changesRow(db, sql, [now, senderId, id]);
}

/** Deletes at most `limit` addresses that were removed before a time. Returns how many. */
export async function deleteRemovedAddresses(db: Db, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM forward_addresses WHERE id IN (
    SELECT id FROM forward_addresses WHERE removed_at < ? ORDER BY removed_at LIMIT ?)`;
  const [written] = await db.write([{ sql, args: [before, limit] }]);
  return written?.changes ?? 0;
}
