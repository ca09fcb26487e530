/** If a client makes this many errors (syntax, sequence, unknown commands), the session ends. */
export const MAX_ERRORS = 20;
/** If this many recipients are refused, the session ends: the client is guessing addresses. */
export const MAX_REFUSED_RECIPIENTS = 100;
/** If this many logins fail, the session ends: the client is guessing keys. */
export const MAX_LOGIN_FAILURES = 5;
/**
 * Commands answered in a row. A piece may hold tens of thousands; after these, other connections are served, and the
 * client has to read its replies.
 */
export const MAX_COMMANDS_IN_A_ROW = 100;
/**
 * Maximum octets a client may send ahead while it must wait for a reply. The connection stops reading long before.
 */
export const MAX_WAITING_OCTETS = 2 * 1024 * 1024;
