import { idCeiling } from "../../core/ids.ts";
import { changesRow, type Db, type Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { besideWildcard } from "./wildcards.ts";
import { requireGuard, requireRoom } from "../engine/guards.ts";

/** Types of the records that an owner may have in a zone that we hold. */
export const OWN_RECORD_TYPES = ["A", "AAAA", "CNAME", "TXT", "MX", "CAA"] as const;
export type OwnRecordType = (typeof OWN_RECORD_TYPES)[number];

/** Maximum number of records of its owner in one domain. */
export const MAX_OWN_RECORDS = 200;
/**
 * Maximum number of records of one type at one name: with the longest values, an answer still fits into a message
 * by TCP.
 */
export const MAX_RECORDS_AT_NAME = 20;

/** A record of a domain's owner in the zone that we hold. */
export interface OwnRecord {
  id: string;
  senderId: string;
  domainId: string;
  type: OwnRecordType;
  /** The full name: lower case, A-labels, without final dot. */
  name: string;
  /** As in a zone file, but text without quotes. */
  value: string;
  /** Seconds. */
  ttl: number;
  /** Preference of an MX record; null for others. */
  priority: number | null;
  createdAt: number;
}

const RECORDS = table<OwnRecord>("domain_records", {
  id: plain("id"),
  senderId: plain("sender_id"),
  domainId: plain("domain_id"),
  type: plain("type"),
  name: plain("name"),
  value: plain("value"),
  ttl: plain("ttl"),
  priority: plain("priority"),
  createdAt: plain("created_at"),
});

const OF_PROJECT = "domain_id = (SELECT id FROM domains WHERE sender_id = ? AND id = ?)";

/** Returns at most `take` of the owner's records of a project's domain, newest first, with ids below `after`. */
export function listOwnRecords(
  db: Db,
  senderId: string,
  domainId: string,
  after: string | null,
  take: number,
): Promise<OwnRecord[]> {
  const page = `WHERE ${OF_PROJECT} AND id < ? ORDER BY id DESC LIMIT ?`;
  return RECORDS.all(db, page, [senderId, domainId, after ?? idCeiling("rec"), take]);
}

/** Returns all of the owner's records of a project's domain, oldest first. There are at most `MAX_OWN_RECORDS`. */
export function allOwnRecords(db: Db, senderId: string, domainId: string): Promise<OwnRecord[]> {
  return RECORDS.all(db, `WHERE ${OF_PROJECT} ORDER BY id LIMIT ?`, [senderId, domainId, MAX_OWN_RECORDS]);
}

/** Deletes a record. Returns false if the project's domain has none with that id. */
export function deleteOwnRecord(db: Db, senderId: string, domainId: string, id: string): Promise<boolean> {
  return changesRow(db, `DELETE FROM domain_records WHERE ${OF_PROJECT} AND id = ?`, [
    senderId,
    domainId,
    id,
  ]);
}

/**
 * Returns the statements that store a record. They undo their write with the guards `domain_not_delegated`,
 * `mx_in_the_way`, `record_exists`, `alias_not_alone`, `too_many_at_name` and `too_many_records`.
 * Further guards are those of `besideWildcard`, which `branch` is for.
 * @param isTopMx true for an MX record at the top of the zone, the place of ours while the domain receives
 */
export function insertOwnRecord(
  record: OwnRecord,
  { isTopMx, branch }: { isTopMx: boolean; branch: string | null },
): Statement[] {
  const { senderId, domainId, name, type, value, priority } = record;
  const domain = [senderId, domainId];
  const here = "domain_records WHERE domain_id = ?";
  return [
    requireGuard("domain_not_delegated", {
      sql: "EXISTS (SELECT 1 FROM domains WHERE sender_id = ? AND id = ? AND delegated = 1)",
      args: domain,
    }),
    requireGuard("mx_in_the_way", {
      sql: "NOT EXISTS (SELECT 1 FROM domains WHERE sender_id = ? AND id = ? AND receiving = 1 AND ? = 1)",
      args: [...domain, Number(isTopMx)],
    }),
    ...besideWildcard(record, branch),
    requireGuard("record_exists", {
      sql: `NOT EXISTS (SELECT 1 FROM ${here} AND name = ? AND type = ? AND value = ? AND priority IS ?)`,
      args: [domainId, name, type, value, priority],
    }),
    requireGuard("alias_not_alone", {
      sql: `NOT EXISTS (SELECT 1 FROM ${here} AND name = ? AND (type = 'CNAME' OR ? = 'CNAME'))`,
      args: [domainId, name, type],
    }),
    requireGuard("too_many_at_name", {
      sql: `(SELECT COUNT(*) FROM ${here} AND name = ? AND type = ?) < ?`,
      args: [domainId, name, type, MAX_RECORDS_AT_NAME],
    }),
    requireRoom(here, domainId, MAX_OWN_RECORDS),
    RECORDS.insert(record),
  ];
}
