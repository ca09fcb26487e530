import { idCeiling } from "../../core/ids.ts";
import { bouncingDomain } from "../../core/own-names.ts";
import type { SpamCheckFail } from "../../core/messages/spam.ts";
import { OPEN_TRACKING, type OpenTracking } from "../../core/messages/tracking.ts";
import type { ConfigurationQuery, Db, Statement } from "../engine/client.ts";
import { flag, json, oneOf, plain, type Row, table } from "../engine/columns.ts";
import { forgetReputation } from "./reputation.ts";

/** A project. Times in milliseconds. `dailyQuota` is recipients a UTC day; null: only the trust tier limits them. */
export interface Project {
  id: string;
  accountId: string;
  externalId: string;
  name: string;
  plan: string;
  trustTier: string;
  dailyQuota: number | null;
  trackOpens: OpenTracking;
  trackClicks: boolean;
  /** Messages that have html alone get a text part made from it. */
  textFromHtml: boolean;
  /** Routes that its mail takes, in order. Empty: the default one. */
  routeIds: readonly string[];
  suspendedAt: number | null;
  /** Days after which contents, and whole messages, go; null: those of the installation. */
  contentDays: number | null;
  eventDays: number | null;
  /** The fate of mail if the spam filter fails; null: as the installation says. */
  spamCheckFail: SpamCheckFail | null;
  /** Every broadcast shows it. Null: broadcasts need none. */
  postalAddress: string | null;
  createdAt: number;
}

export const PROJECTS = table<Project>("senders", {
  id: plain("id"),
  accountId: plain("account_id"),
  externalId: plain("external_id"),
  name: plain("name"),
  plan: plain("plan"),
  trustTier: plain("trust_tier"),
  dailyQuota: plain("daily_quota"),
  trackOpens: oneOf("track_opens", OPEN_TRACKING),
  trackClicks: flag("track_clicks"),
  textFromHtml: flag("text_from_html"),
  routeIds: json("route_ids"),
  suspendedAt: plain("suspended_at"),
  contentDays: plain("content_days"),
  eventDays: plain("event_days"),
  spamCheckFail: plain("spam_check_fail"),
  postalAddress: plain("postal_address"),
  createdAt: plain("created_at"),
});

/** What a new project has if no one says otherwise. */
export const NEW_PROJECT = {
  dailyQuota: null,
  textFromHtml: true,
  routeIds: [],
  suspendedAt: null,
  contentDays: null,
  eventDays: null,
  spamCheckFail: null,
  postalAddress: null,
} satisfies Partial<Project>;

/** The fields of a project that may be changed. */
export type ProjectChanges = Partial<
  Pick<
    Project,
    | "name"
    | "plan"
    | "trustTier"
    | "dailyQuota"
    | "trackOpens"
    | "trackClicks"
    | "textFromHtml"
    | "routeIds"
    | "suspendedAt"
    | "contentDays"
    | "eventDays"
    | "spamCheckFail"
    | "postalAddress"
    | "externalId"
  >
>;

/**
 * Returns the statement that makes a project. If the external id is taken, it breaks UNIQUE on `senders.account_id,
 * senders.external_id`.
 */
export function insertProject(sender: Project): Statement {
  return PROJECTS.insert(sender);
}

/**
 * External id of the hidden project that sends the service's own mail, such as links to sign in. No key may read them, so
 * no function below finds the project. The API takes no such external id.
 */
export const SERVICE_PROJECT = ".postrider";
/** Condition of the projects that callers may see. */
const SHOWN = `external_id <> '${SERVICE_PROJECT}' AND deleted_at IS NULL`;

const SENDER_BY_NAME: ConfigurationQuery<Row, Project> = {
  sql: `SELECT ${PROJECTS.columns} FROM senders
    WHERE account_id = ?1 AND (id = ?2 OR external_id = ?2) AND ${SHOWN} ORDER BY id = ?2 DESC LIMIT 1`,
  read: (row) => PROJECTS.read(row),
};

/** Returns the account's project with that id or external id; null if there is none. An id wins over an external id. */
export function findProject(db: Db, accountId: string, name: string): Promise<Project | null> {
  return db.readConfig(SENDER_BY_NAME, [accountId, name]);
}

const SPAM_CHECK_FAIL: ConfigurationQuery<Row, Pick<Project, "spamCheckFail">> = {
  sql: "SELECT spam_check_fail FROM senders WHERE id = ?",
  read: ({ spam_check_fail }) => ({ spamCheckFail: spam_check_fail as Project["spamCheckFail"] }),
};

/** Returns what a project asks for if the spam filter fails; null if it leaves that to the installation. */
export async function spamCheckFailOf(db: Db, id: string): Promise<SpamCheckFail | null> {
  return (await db.readConfig(SPAM_CHECK_FAIL, [id]))?.spamCheckFail ?? null;
}

/** Returns the account's project; null if it has none with that id. */
export function getProject(db: Db, accountId: string, id: string): Promise<Project | null> {
  return PROJECTS.first(db, `WHERE account_id = ? AND id = ? AND ${SHOWN}`, [accountId, id]);
}

/** Returns those of the account's projects that exist, in the order of their ids. */
export function projectsWithIds(db: Db, accountId: string, ids: readonly string[]): Promise<Project[]> {
  return PROJECTS.all(
    db,
    `WHERE account_id = ? AND id IN (SELECT value FROM json_each(?)) AND ${SHOWN} ORDER BY id`,
    [accountId, JSON.stringify(ids)],
  );
}

/** Returns a project of any account; null if there is none with that id. It serves chores. */
export function findShownProject(db: Db, id: string): Promise<Project | null> {
  return PROJECTS.first(db, `WHERE id = ? AND ${SHOWN}`, [id]);
}

/** Returns at most `take` of the account's projects, newest first, with ids below `after`. */
export function listProjects(
  db: Db,
  accountId: string,
  after: string | null,
  take: number,
): Promise<Project[]> {
  const page = `WHERE account_id = ? AND id < ? AND ${SHOWN} ORDER BY id DESC LIMIT ?`;
  return PROJECTS.all(db, page, [accountId, after ?? idCeiling("snd"), take]);
}

/**
 * Changes the given fields. If a suspension is lifted, the counts that led to it are forgotten. Returns the project
 * afterwards; null if there is none.
 */
export async function updateProject(
  db: Db,
  accountId: string,
  id: string,
  changes: ProjectChanges,
): Promise<Project | null> {
  const before = await getProject(db, accountId, id);
  if (before === null) return null;
  const { set, values } = PROJECTS.assignments(changes);
  if (set.length === 0) return before;
  const written = await db.write([
    ...(changes.suspendedAt === null ? forgetReputation(accountId, id) : []),
    {
      // RETURNING, because a later read could see another request's change.
      sql: `UPDATE senders SET ${set.join(", ")} WHERE account_id = ? AND id = ? AND deleted_at IS NULL
        RETURNING ${PROJECTS.columns}`,
      args: [...values, accountId, id],
    },
  ]);
  return PROJECTS.returned(written.at(-1));
}

/**
 * The operator's project, which the first start made: by the order in which rows came, because an imported project may
 * have an older id.
 */
const FIRST = `FROM senders WHERE account_id = (SELECT id FROM accounts ORDER BY rowid LIMIT 1) AND ${SHOWN}
  ORDER BY rowid LIMIT 1`;

const OLDEST: ConfigurationQuery<Row, Project> = {
  sql: `SELECT ${PROJECTS.columns} ${FIRST}`,
  read: (row) => PROJECTS.read(row),
};

/** Returns the project that the first start made; null before that. */
export function defaultProject(db: Db): Promise<Project | null> {
  return db.readConfig(OLDEST, []);
}

/** Returns the operator's project, the oldest of the oldest account; null before the first start is over. */
export async function operatorProject(db: Db): Promise<string | null> {
  return (await db.first<{ id: string }>(`SELECT id ${FIRST}`))?.id ?? null;
}

/**
 * Returns the project that receives mail for a domain, or whose verified domain has its own return path there; null if there is
 * none.
 */
export async function receivingProject(db: Db, domain: string): Promise<string | null> {
  const row = await db.first<{ sender_id: string }>(
    `SELECT sender_id FROM domains WHERE name = ?1 AND receiving = 1
     UNION ALL SELECT sender_id FROM (SELECT sender_id FROM domains
       WHERE name = ?2 AND return_path_verified = 1 AND status = 'verified' ORDER BY id)
     LIMIT 1`,
    [domain, bouncingDomain(domain)],
  );
  return row?.sender_id ?? null;
}

/** Returns the account's hidden project for the service's own mail, with those fields if it must be made first. */
export async function serviceProject(db: Db, fresh: Project): Promise<Project | null> {
  const where = "WHERE account_id = ? AND external_id = ?";
  const find = () => PROJECTS.first(db, where, [fresh.accountId, SERVICE_PROJECT]);
  const found = await find();
  if (found !== null) return found;
  const { sql, args } = PROJECTS.insert({ ...fresh, externalId: SERVICE_PROJECT });
  await db.write([{ sql: `${sql} ON CONFLICT DO NOTHING`, args }]);
  return find();
}

/** Returns the oldest project of an account that is not suspended; null if there is none. */
export function oldestActiveProject(db: Db, accountId: string): Promise<Project | null> {
  return PROJECTS.first(
    db,
    `WHERE account_id = ? AND suspended_at IS NULL AND ${SHOWN} ORDER BY id LIMIT 1`,
    [accountId],
  );
}
