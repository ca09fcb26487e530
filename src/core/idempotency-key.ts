/** Syntax of an Idempotency-Key: 1–256 printable characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,256}$/;
