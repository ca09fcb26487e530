/** What went wrong in one word or sentence: the error's code (`ECONNREFUSED`) where it has one, else its message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
