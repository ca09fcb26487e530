import { AppError } from "../../core/errors.ts";
import { randomBase62 } from "../../core/ids.ts";
import type { Db, Statement, Store } from "../../store/engine/client.ts";
import { oldestWideKey } from "../../store/projects/keys.ts";
import { insertStartToken, takeStartToken } from "../../store/projects/start-tokens.ts";
import { hashSecret } from "./api-keys.ts";

/** Milliseconds for which a start link works. */
export const START_LINK_MS = 15 * 60 * 1000;
/** 190 random bits. */
const TOKEN_CHARS = 32;

/** A link that signs a browser in once. */
export interface StartLink {
  token: string;
  /** Milliseconds. */
  expiresAt: number;
}

/** Makes a link. Returns it with the statements that store the hash of its token. */
export function newStartLink(keyId: string, now: number): { link: StartLink; statements: Statement[] } {
  const link = { token: randomBase62(TOKEN_CHARS), expiresAt: now + START_LINK_MS };
  const { token, expiresAt } = link;
  return { link, statements: insertStartToken({ tokenHash: hashSecret(token), keyId, expiresAt }, now) };
}

/**
 * Makes a link for the account's oldest account-wide key that has every scope.
 * @throws AppError 404 if there is no such key
 */
export async function makeStartLink({ db, clock }: Store, accountId: string): Promise<StartLink> {
  const key = await oldestWideKey(db, accountId);
  if (key === null)
    throw new AppError(
      "not_found",
      "There is no account-wide key with every scope. postrider keys create --name dashboard makes one.",
    );
  const { link, statements } = newStartLink(key, clock.now());
  await db.write(statements);
  return link;
}

/** Uses up the token of a link. Returns the id of its key; null if it is unknown, used or too old. */
export function useStartToken(db: Db, token: string, now: number): Promise<string | null> {
  return takeStartToken(db, hashSecret(token), now);
}

/** Returns the URL of a link. Browsers send no server the part after `#`, so the token is in no log. */
export function startUrl(url: string, token: string): string {
  return `${url}/start#${token}`;
}
