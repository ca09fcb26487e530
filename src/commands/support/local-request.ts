import { UNBOUND } from "../../core/key-bounds.ts";
import { randomBytes } from "node:crypto";
import type { Clock } from "../../core/time/clock.ts";
import { validationError } from "../../core/errors.ts";
import { check } from "../../core/validation.ts";
import { NO_LIMIT } from "../../store/projects/holdings.ts";
import { openPage } from "../../http/routing/paging.ts";
import type { Route } from "../../http/routing/route.ts";

export interface LocalRequest {
  operationId: string;
  accountId: string;
  params?: Readonly<Record<string, string>>;
  body?: Readonly<Record<string, unknown>>;
  /** Items of a list. */
  limit?: number;
}

/**
 * Calls a route of the API within this process, as an account-wide key with every scope. An operator who can read the
 * database file may do all of this. The command line therefore follows the rules of the API, without a second set of
 * them.
 * @returns the body of the answer
 * @throws AppError as the API answers
 */
export async function askRoute(
  routes: readonly Route[],
  clock: Clock,
  { operationId, accountId, params = {}, body = {}, limit }: LocalRequest,
): Promise<unknown> {
  const route = routes.find((candidate) => candidate.operationId === operationId);
  if (route === undefined) throw new Error(`there is no route ${operationId}`);
  const issues = route.body === undefined ? [] : check(route.body, body);
  if (issues.length > 0) throw validationError(issues);
  const query = limit === undefined ? {} : { limit };
  const answer = await route.handle({
    request: new Request(`http://localhost${route.path}`, { method: route.method }),
    requestId: "command-line",
    now: clock.now(),
    ip: null,
    params,
    query,
    body,
    bytes: new Uint8Array(),
    principal: { keyId: null, grant: null, accountId, senderId: null, scopes: [], bounds: UNBOUND },
    senderId: null,
    project: null,
    page: () => openPage({ key: randomBytes(32), path: route.path, owner: accountId, query }),
    record: () => [],
    growing: NO_LIMIT,
    upload: null,
    expectAnswer: () => undefined,
  });
  return answer.body;
}
