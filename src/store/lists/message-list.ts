import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/messages/states.ts";
import type { Db } from "../engine/client.ts";
import { conditionOf, type MessageFilter, passesRest, READ_BY } from "./message-filter.ts";
import {
  type Found,
  collectPage,
  MAX_LOOKED_AT,
  type Page,
  SUMMARY_COLUMNS,
  type SummaryRow,
  mergeFound,
  type Walk,
} from "./message-page.ts";
import { searchIndex } from "./message-search.ts";
import type { Direction, Message } from "../messages/messages.ts";
import { termsWanted } from "../search/search-terms.ts";

export type { MessageFilter } from "./message-filter.ts";

export interface MessageSummary {
  id: string;
  from: string;
  /** Name of the sender; null if there is none. */
  fromName: string | null;
  to: string[];
  /** Name of the first recipient; null if there is none. */
  toName: string | null;
  subject: string;
  status: MessageStatus;
  direction: Direction;
  createdAt: number;
}

/** If a status has fewer messages than this, they are read by status, whatever the other filters. */
const FEW = 400;

/** One page of summaries, newest first. */
export interface MessagePage {
  messages: MessageSummary[];
  /** If the page is short and the list is not at its end: messages with ids below this have not been looked at. */
  stoppedAt: string | null;
}

/** Returns one page of summaries: at most `limit` with ids below `before`. */
export async function listMessages(
  db: Db,
  senderId: string,
  filter: MessageFilter,
  before: string | null,
  limit: number,
): Promise<MessagePage> {
  const { rows, stoppedAt } = await rowsOf(db, { senderId, filter, before, limit });
  return {
    messages: rows.slice(0, limit).map(toSummary),
    stoppedAt: rows.length < limit ? stoppedAt : null,
  };
}

async function rowsOf(db: Db, page: Page): Promise<Found> {
  const terms = termsWanted(page.senderId, page.filter);
  const narrowed = terms.wholes.length + terms.grams.length > 0;
  if (!narrowed || (await hasFewOfStatus(db, page)))
    return collectPage(downIds(db, page, sourceOf(page.filter)), page);
  // Read before the index, so that a message that is added or changed in between is found at least once.
  const waiting = await waitingRows(db, page);
  const changed = page.filter.q === undefined ? [] : [await collectPage(downIds(db, page, CHANGED), page)];
  return mergeFound([waiting, ...changed, await searchIndex(db, page, terms)]);
}

/** Returns true if the page filters by a status that few of the messages below it have. */
async function hasFewOfStatus(db: Db, { senderId, filter, before }: Page): Promise<boolean> {
  if (filter.status === undefined) return false;
  const { sql, args } = conditionOf(senderId, filter, before, ["status"]);
  const row = await db.first<{ count: number }>(
    `SELECT count(*) AS count FROM
      (SELECT 1 FROM messages m INDEXED BY messages_by_status WHERE ${sql} LIMIT ?)`,
    [...args, FEW],
  );
  return row !== null && row.count < FEW;
}

/**
 * Returns those of the page that wait for the index, among the newest `MAX_LOOKED_AT`: under load there may be many
 * thousands.
 */
async function waitingRows(db: Db, page: Page): Promise<Found> {
  const { sql, args } = conditionOf(page.senderId, page.filter, page.before, []);
  const lowest = await db.first<{ id: string }>(
    `SELECT m.id FROM ${WAITING} ${sql} ORDER BY m.id DESC LIMIT 1 OFFSET ?`,
    [...args, MAX_LOOKED_AT - 1],
  );
  if (lowest === null) return collectPage(downIds(db, page, WAITING), page);
  const { id } = lowest;
  const { rows, stoppedAt } = await collectPage(downIds(db, page, `${WAITING} m.id >= ? AND`, [id]), page);
  return { rows, stoppedAt: rows.length < page.limit ? (stoppedAt ?? id) : null };
}

/**
 * The sources that are read down by id. The index is named, because SQLite without statistics may choose to sort all
 * messages of a status.
 */
const ALL = "messages m INDEXED BY messages_by_sender WHERE";
const BY_STATUS = "messages m INDEXED BY messages_by_status WHERE";
const BY_TRUST = "messages m INDEXED BY messages_by_trust WHERE";
/** Messages that are not in the search index yet, and those that are in it with another subject. */
const WAITING = "messages m INDEXED BY messages_unindexed WHERE m.position IS NULL AND";
const CHANGED = "messages_changed s CROSS JOIN messages m ON m.id = s.message_id WHERE";

function sourceOf({ status, trust }: MessageFilter): string {
  if (trust !== undefined) return BY_TRUST;
  return status === undefined ? ALL : BY_STATUS;
}

function downIds(
  db: Db,
  { senderId, filter, before }: Page,
  source: string,
  first: readonly string[] = [],
): Walk {
  let below = before;
  return {
    async next(most) {
      const { sql, args } = conditionOf(senderId, filter, below, READ_BY);
      const rest = passesRest(filter);
      const rows = await db.all<SummaryRow>(
        `SELECT ${SUMMARY_COLUMNS}, (${rest.sql}) AS passes FROM ${source} ${sql}
          ORDER BY ${source === CHANGED ? "s.message_id" : "m.id"} DESC LIMIT ?`,
        [...rest.args, ...first, ...args, most],
      );
      below = rows.at(-1)?.id ?? below;
      return rows;
    },
    passed: ({ id }) => id,
  };
}

/** Returns a message as lists show it. */
export function summaryOf({ id, from, to, subject, status, direction, createdAt }: Message): MessageSummary {
  const fromName = from.name ?? null;
  return {
    id,
    from: from.email,
    fromName,
    ...recipientsOf(to),
    subject,
    status,
    direction,
    createdAt,
  };
}

function recipientsOf(to: readonly Mailbox[]): Pick<MessageSummary, "to" | "toName"> {
  return { to: to.map(({ email }) => email), toName: to[0]?.name ?? null };
}

/** Returns a row as lists show it. */
export function toSummary(row: SummaryRow): MessageSummary {
  return {
    id: row.id,
    from: row.from_email,
    fromName: row.from_name,
    ...recipientsOf(JSON.parse(row.to_list)),
    subject: row.subject,
    status: row.status,
    direction: row.direction,
    createdAt: row.created_at,
  };
}
