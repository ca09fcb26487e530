/** Error codes of libSQL and of the network below it that say: the database cannot be reached or used just now. */
const UNAVAILABLE =
  /^(?:SQLITE_(?:BUSY|LOCKED|CANTOPEN|IOERR|FULL|READONLY|PROTOCOL)|SERVER_ERROR|HRANA_|CLIENT_CLOSED|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|ConnectionRefused|ConnectionClosed|FailedToOpenSocket)/;

/** Whether the error means a database out of reach, which another try later may find, rather than a fault of ours. */
export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    UNAVAILABLE.test(error.code)
  );
}
