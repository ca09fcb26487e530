import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/states.ts";
import type { Db } from "../engine/client.ts";
import { conditionOf, type MessageFilter } from "./message-filter.ts";
import {
  gather,
  newestFirst,
  type Page,
  SUMMARY_COLUMNS,
  type SummaryRow,
  type Walk,
} from "./message-page.ts";
import { searchIndex } from "./message-search.ts";
import type { Direction } from "../messages.ts";
import { isSettled, termsWanted } from "./search-terms.ts";

export type { MessageFilter } from "./message-filter.ts";

/** A message as lists show it. */
export interface MessageSummary {
  id: string;
  from: string;
  to: string[];
  subject: string;
  status: MessageStatus;
  direction: Direction;
  createdAt: number;
}

/** A status of fewer messages than this is walked itself, whatever else is looked for. */
const FEW = 1000;

/** One page of summaries, newest first: at most `limit` rows with ids below `before`. */
export async function listMessages(
  db: Db,
  senderId: string,
  filter: MessageFilter,
  before: string | null,
  limit: number,
): Promise<MessageSummary[]> {
  const page = { senderId, filter, before, limit };
  return (await rowsOf(db, page)).slice(0, limit).map(toSummary);
}

async function rowsOf(db: Db, page: Page): Promise<SummaryRow[]> {
  const { status, ...others } = page.filter;
  const { wholes, grams } = termsWanted(page.senderId, others);
  const narrowed = wholes.length + grams.length > 0;
  if (!narrowed || (await hasFewOfStatus(db, page)))
    return gather(downIds(db, page, status === undefined ? ALL : BY_STATUS), page);
  // Before the index is looked into: a message that is entered meanwhile is seen here or there, or twice.
  const waiting = await gather(downIds(db, page, WAITING), page);
  const settled =
    status !== undefined && isSettled(status) ? await gather(downIds(db, page, SETTLED), page) : [];
  const indexed = await searchIndex(db, page, termsWanted(page.senderId, page.filter));
  return newestFirst([...waiting, ...settled, ...indexed]);
}

/** Whether the page narrows by a status that few of the messages below it have. */
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
 * What is walked down by id, said outright: without statistics SQLite may choose to sort all messages of a status.
 */
const ALL = "messages m INDEXED BY messages_by_sender WHERE";
const BY_STATUS = "messages m INDEXED BY messages_by_status WHERE";
/** Messages that are not in the search index yet, and those in it whose status is not. */
const WAITING = "messages m INDEXED BY messages_unindexed WHERE m.position IS NULL AND";
const SETTLED = "messages_settled s CROSS JOIN messages m ON m.id = s.message_id WHERE";

function downIds(db: Db, { senderId, filter, before }: Page, source: string): Walk {
  let below = before;
  return async (most) => {
    const { sql, args } = conditionOf(senderId, filter, below);
    const rows = await db.all<SummaryRow>(
      `SELECT ${SUMMARY_COLUMNS} FROM ${source} ${sql}
        ORDER BY ${source === SETTLED ? "s.message_id" : "m.id"} DESC LIMIT ?`,
      [...args, most],
    );
    below = rows.at(-1)?.id ?? below;
    return rows;
  };
}

function toSummary(row: SummaryRow): MessageSummary {
  return {
    id: row.id,
    from: row.from_email,
    to: (JSON.parse(row.to_list) as Mailbox[]).map((mailbox) => mailbox.email),
    subject: row.subject,
    status: row.status,
    direction: row.direction,
    createdAt: row.created_at,
  };
}
