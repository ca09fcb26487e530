import { existing } from "../../core/errors.ts";

/**
 * Returns the fields that the two routes of a mailed link share, and a function that opens its token. GET shows a page with a form and
 * changes nothing, because scanners open every link, and send no forms. POST acts.
 * @param path path before the token
 * @param open returns null for a token that was not made here, or whose time is over
 */
export function mailedLink<Path extends string, Link>(
  path: Path,
  open: (token: string) => Promise<Link | null>,
) {
  return {
    common: {
      path: `${path}:token`,
      answers: { 200: "text/html" },
      errors: ["not_found", "service_unavailable"],
    },
    /** @throws AppError 404 if the token opens nothing */
    opened: async (token: string) => existing("link, or one that has expired", await open(token)),
  } as const;
}
