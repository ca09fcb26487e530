import initial from "../../../db/migrations/0001_initial.sql" with { type: "text" };
import audit from "../../../db/migrations/0002_audit.sql" with { type: "text" };
import unsubscriptions from "../../../db/migrations/0008_erased_unsubscriptions.sql" with { type: "text" };
import imports from "../../../db/migrations/0016_imports.sql" with { type: "text" };
import rules from "../../../db/migrations/0006_rules.sql" with { type: "text" };
import members from "../../../db/migrations/0003_members.sql" with { type: "text" };
import notices from "../../../db/migrations/0004_notices.sql" with { type: "text" };
import arrival from "../../../db/migrations/0005_arrival.sql" with { type: "text" };
import words from "../../../db/migrations/0010_words.sql" with { type: "text" };
import mailbox from "../../../db/migrations/0007_mailbox.sql" with { type: "text" };
import keyMakers from "../../../db/migrations/0013_key_makers.sql" with { type: "text" };
import properties from "../../../db/migrations/0009_properties.sql" with { type: "text" };
import topics from "../../../db/migrations/0011_topics.sql" with { type: "text" };
import wildcard from "../../../db/migrations/0012_wildcard.sql" with { type: "text" };
import segments from "../../../db/migrations/0017_segments.sql" with { type: "text" };
import accepted from "../../../db/migrations/0014_accepted_senders.sql" with { type: "text" };
import ruleReplies from "../../../db/migrations/0015_rule_replies.sql" with { type: "text" };
import doubleOptIn from "../../../db/migrations/0023_double_opt_in.sql" with { type: "text" };
import engagement from "../../../db/migrations/0020_engagement.sql" with { type: "text" };
import notes from "../../../db/migrations/0018_notes.sql" with { type: "text" };
import forwardAddresses from "../../../db/migrations/0019_forward_addresses.sql" with { type: "text" };
import ruleEffects from "../../../db/migrations/0022_rule_effects.sql" with { type: "text" };
import broadcasts from "../../../db/migrations/0021_broadcasts.sql" with { type: "text" };
import postalAddress from "../../../db/migrations/0024_postal_address.sql" with { type: "text" };
import variants from "../../../db/migrations/0025_broadcast_variants.sql" with { type: "text" };
import wholeCharacters from "../../../db/migrations/0026_whole_characters.sql" with { type: "text" };
import { auditTriggers } from "./audit-triggers.ts";
import {
  AUDITED_BROADCAST,
  AUDITED_CONTACTS,
  AUDITED_DOUBLE_OPT_IN,
  AUDITED_POSTAL_ADDRESS,
  AUDITED_SEGMENTS,
  AUDITED_TOPICS,
} from "./audited-audience.ts";
import { AUDITED_IMPORTS, AUDITED_MEMBERS, AUDITED_NOTICES, AUDITED_RULES } from "./audited-members.ts";
import { AUDITED_NOTES } from "./audited-notes.ts";
import { AUDITED_ACCEPTED, AUDITED_FORWARDS, AUDITED_WILDCARD } from "./audited-receiving.ts";
import { AUDITED, type Audited } from "./audited-tables.ts";

/** One step of the schema. Steps are only appended; a step that was released never changes. */
export interface Migration {
  version: number;
  name: string;
  /** Changes of the schema. They commit together, so they must be quick on a large table. */
  sql: string;
  /**
   * Oldest schema version whose programs still work with the database after this step. A step that only adds names the
   * one before it, so that processes of two neighboring versions run side by side.
   */
  worksWith: number;
  /** Walks that fill in rows from before the step, in small commits between which other processes write. */
  fill?: readonly Fill[];
}

/** A walk over a table, which changes its old rows. It starts again after a crash, so it must be able to run twice. */
export interface Fill {
  table: string;
  /** Column by which the table is walked: its rowid, or the first of its primary key. */
  by: string;
  /** A statement for the rows with `by` from `?1` to `?2`. */
  sql: string;
}

/** Returns the SQL of a step with the triggers of the audited tables. */
function audited(sql: string, tables: readonly Audited[]): string {
  return `${sql}\n${auditTriggers(tables)}`;
}

/** The triggers of the step number each contact and copy its values. */
const TOUCH = "UPDATE contacts SET topics = topics WHERE id BETWEEN ?1 AND ?2";
const CONTACT_VALUES: Fill = { table: "contacts", by: "id", sql: TOUCH };

/**
 * Returns SQL that is true for text with half of a surrogate pair: GLOB reads one as U+FFFD, which the text does not have. No other
 * function of SQLite tells them apart, and a program cannot read the row.
 */
function hasHalf(column: string): string {
  return `replace(${column}, char(65533), '') GLOB '*' || char(65533) || '*'`;
}

/** No mail server has such a name, so a report with it is made up. */
const MADE_UP = `DELETE FROM report_rows WHERE id BETWEEN ?1 AND ?2 AND (${hasHalf("source")} OR ${hasHalf("disposition")})`;
const MADE_UP_REPORTS: Fill = { table: "report_rows", by: "id", sql: MADE_UP };

/** All steps in order. Their SQL is part of the program. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "initial", sql: initial, worksWith: 1 },
  { version: 2, name: "audit", sql: audited(audit, AUDITED), worksWith: 1 },
  { version: 3, name: "members", sql: audited(members, AUDITED_MEMBERS), worksWith: 1 },
  { version: 4, name: "notices", sql: audited(notices, AUDITED_NOTICES), worksWith: 1 },
  { version: 5, name: "arrival", sql: arrival, worksWith: 4 },
  { version: 6, name: "rules", sql: audited(rules, AUDITED_RULES), worksWith: 5 },
  { version: 7, name: "mailbox", sql: mailbox, worksWith: 6 },
  { version: 8, name: "erased_unsubscriptions", sql: unsubscriptions, worksWith: 7 },
  { version: 9, name: "properties", sql: audited(properties, AUDITED_CONTACTS), worksWith: 8 },
  { version: 10, name: "words", sql: words, worksWith: 9 },
  { version: 11, name: "topics", sql: audited(topics, AUDITED_TOPICS), worksWith: 10 },
  { version: 12, name: "wildcard", sql: audited(wildcard, AUDITED_WILDCARD), worksWith: 11 },
  { version: 13, name: "key_makers", sql: keyMakers, worksWith: 12 },
  { version: 14, name: "accepted_senders", sql: audited(accepted, AUDITED_ACCEPTED), worksWith: 13 },
  { version: 15, name: "rule_replies", sql: ruleReplies, worksWith: 14 },
  { version: 16, name: "imports", sql: audited(imports, AUDITED_IMPORTS), worksWith: 15 },
  { version: 17, name: "segments", sql: audited(segments, AUDITED_SEGMENTS), worksWith: 16 },
  { version: 18, name: "notes", sql: audited(notes, AUDITED_NOTES), worksWith: 17 },
  { version: 19, name: "forward_addresses", sql: audited(forwardAddresses, AUDITED_FORWARDS), worksWith: 18 },
  { version: 20, name: "engagement", sql: engagement, worksWith: 19, fill: [CONTACT_VALUES] },
  { version: 21, name: "broadcasts", sql: audited(broadcasts, AUDITED_BROADCAST), worksWith: 20 },
  { version: 22, name: "rule_effects", sql: ruleEffects, worksWith: 21 },
  { version: 23, name: "double_opt_in", sql: audited(doubleOptIn, AUDITED_DOUBLE_OPT_IN), worksWith: 22 },
  { version: 24, name: "postal_address", sql: audited(postalAddress, AUDITED_POSTAL_ADDRESS), worksWith: 23 },
  { version: 25, name: "broadcast_variants", sql: variants, worksWith: 24 },
  { version: 26, name: "whole_characters", sql: wholeCharacters, worksWith: 25, fill: [MADE_UP_REPORTS] },
];
