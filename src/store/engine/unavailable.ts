import { EngineError } from "./engine.ts";

/** Error codes, of libSQL, of the network and of the object store, for what cannot be reached or used just now. */
const UNAVAILABLE =
  /^(?:SQLITE_(?:BUSY|LOCKED|CANTOPEN|IOERR|FULL|READONLY|PROTOCOL)|SERVER_ERROR|BLOCKED|HRANA_|CLIENT_CLOSED|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|ConnectionRefused|ConnectionClosed|FailedToOpenSocket|OBJECT_STORE$)/;

/** Whether the error is of a database or an object store out of reach, and no fault of ours: a later try may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof EngineError && error.ofAll) return true;
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    UNAVAILABLE.test(error.code)
  );
}
