import { createClient, LibsqlBatchError } from "@libsql/client";
import { type Engine, EngineError, errorCode } from "./engine.ts";

export interface RemoteOptions {
  /** `libsql://`, `http://` or `https://`; with `syncUrl`, the file of an embedded replica. */
  url: string;
  authToken: string | null;
  /** Primary of which the file is an embedded replica. */
  syncUrl: string | null;
}

/** A libSQL server, or an embedded replica of one: reads local, writes at the primary. */
export function openRemote({ url, authToken, syncUrl }: RemoteOptions): Engine {
  const client = createClient({
    url,
    intMode: "number",
    ...(authToken === null ? {} : { authToken }),
    ...(syncUrl === null ? {} : { syncUrl }),
  });
  return {
    async all(sql, args) {
      try {
        return (await client.execute({ sql, args })).rows as unknown as Record<string, unknown>[];
      } catch (error) {
        throw translated(error);
      }
    },
    async first(sql, args) {
      try {
        return ((await client.execute({ sql, args })).rows[0] as unknown as Record<string, unknown>) ?? null;
      } catch (error) {
        throw translated(error);
      }
    },
    async batch(statements) {
      try {
        const results = await client.batch([...statements], "write");
        return results.map(({ rows, rowsAffected }) => ({
          rows: rows as unknown as Record<string, unknown>[],
          // libSQL counts no changes for a statement with RETURNING: its rows are what it changed.
          changes: Math.max(rowsAffected, rows.length),
        }));
      } catch (error) {
        throw translated(error);
      }
    },
    close: () => client.close(),
  };
}

function translated(error: unknown): unknown {
  const statement = error instanceof LibsqlBatchError ? error.statementIndex : null;
  const code = errorCode(error);
  return error instanceof Error && code !== "" ? new EngineError(error, code, statement) : error;
}
