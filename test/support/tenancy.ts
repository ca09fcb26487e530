import { SCOPES } from "../../src/http/routing/scopes.ts";
import type { Operation } from "./openapi-document.ts";
import type { Presented, Tenant, World } from "./tenants.ts";

/** A way to authenticate a request. */
export interface Credential {
  name: string;
  /** The error of a key that is revoked, missing or too narrow, wherever it is used; or null. */
  refusal: (operation: Operation) => number | null;
  /** The error of a key that has fewer rights than what it would make or change, once that is found; or null. */
  tooFew?: (operation: Operation) => number | null;
  /** True if the key is account-wide. */
  wide: (operation: Operation) => boolean;
  present(world: World, operation: Operation): Promise<Presented>;
}

export const PROJECT_HEADER = "X-Service-Product";

/** Only account-wide keys manage projects and the installation, so their narrowed keys are account-wide. */
const ACCOUNT_KEY_ONLY = /^\/v1\/(?:senders|routes|health|account|settings|lanes|audit-log|members)(\/|$)/;
const OTHER_SCOPE_OF_NONE: readonly string[] = [];

const never = () => null;
const always = (status: number) => () => status;
const onProject = (status: number) => (operation: Operation) =>
  operation.level === "project" ? status : null;
/** These operations need no project, but check the one that a request names. */
const onNamedProject = (status: number) => (operation: Operation) =>
  operation.level === "project" || NAMES_PROJECT.has(operation.key) ? status : null;
const NAMES_PROJECT: ReadonlySet<string> = new Set(["GET /v1/me", "POST /v1/erasures", "GET /v1/exports"]);

/** 403 if a project key calls an operation that needs an account-wide one. */
const projectKey = ({ path }: Operation) => (ACCOUNT_KEY_ONLY.test(path) ? 403 : null);
const isAccount = ({ level }: Operation) => level === "account";

const naming = (tenant: Tenant) => ({ [PROJECT_HEADER]: tenant.senderId });

/** Keys with scopes, one for each set, made once. */
const narrowed = new WeakMap<World, Map<string, Promise<string>>>();

function narrowedKey(world: World, operation: Operation, scopes: readonly string[]): Promise<string> {
  const keys = narrowed.get(world) ?? new Map<string, Promise<string>>();
  narrowed.set(world, keys);
  const name = `${operation.level} ${scopes.join(" ")}`;
  const wanted = { scopes, wide: operation.level === "account" };
  const key = keys.get(name) ?? world.makeKey(world.home, wanted).then(({ secret }) => secret);
  keys.set(name, key);
  return key;
}

/** Every way to authenticate: keys of `home`, and invalid ones. */
export const CREDENTIALS: readonly Credential[] = [
  {
    name: "the project's key",
    refusal: projectKey,
    wide: () => false,
    present: async ({ home }) => ({ key: home.key }),
  },
  {
    name: "the account's key, project named",
    refusal: never,
    wide: isAccount,
    present: async ({ home }) => ({ key: home.wide, headers: naming(home) }),
  },
  {
    name: "the account's key, no project named",
    refusal: onProject(400),
    wide: isAccount,
    present: async ({ home }) => ({ key: home.wide }),
  },
  {
    name: "the account's key, another account's project named",
    refusal: onNamedProject(404),
    wide: isAccount,
    present: async ({ home, stranger }) => ({ key: home.wide, headers: naming(stranger) }),
  },
  {
    name: "the project's key, a sibling named",
    refusal: (operation) => onNamedProject(403)(operation) ?? projectKey(operation),
    wide: () => false,
    present: async ({ home, sibling }) => ({ key: home.key, headers: naming(sibling) }),
  },
  {
    name: "a key with every scope except the one",
    refusal: ({ scope }) => (scope === null ? null : 403),
    wide: isAccount,
    async present(world, operation) {
      const scopes = SCOPES.filter((scope) => scope !== operation.scope);
      return { key: await narrowedKey(world, operation, scopes) };
    },
  },
  {
    name: "a key with only the scopes that the operation names",
    refusal: never,
    // Every role has more scopes.
    tooFew: ({ method, scope }) => (scope === "members:write" && method !== "GET" ? 403 : null),
    wide: isAccount,
    async present(world, operation) {
      const scopes =
        operation.scope === null ? OTHER_SCOPE_OF_NONE : [operation.scope, ...operation.otherScopes];
      return { key: await narrowedKey(world, operation, scopes) };
    },
  },
  {
    name: "a revoked key",
    refusal: always(401),
    wide: () => false,
    async present(world) {
      const { secret, id } = await world.makeKey(world.home, { scopes: [], wide: false });
      await world.revoke(world.home, id);
      return { key: secret };
    },
  },
  { name: "no key", refusal: always(401), wide: () => false, present: async () => ({ key: null }) },
];

/** A value for a path segment. */
export interface Target {
  name: string;
  /** The owner, which decides who can see the resource. */
  owner: "home" | "sibling" | "stranger" | "nobody";
  /** Set if each request needs a new resource, because the request may change or delete it. */
  fresh: boolean;
  /** Returns the segment's text from the resources of `home` and of the other tenants. */
  value(own: string, sibling: string, stranger: string): string;
}

const LONG_ID_CHARS = 10_240;
const UPPER_CASE = "own in upper case";

/** Strings that are not the id of any resource, percent-encoded for the path. */
const MALFORMED: readonly (readonly [string, string])[] = [
  ["one up", "..%2f"],
  ["two up", "..%2f..%2f"],
  ["a space", "%20"],
  ["NUL", "%00"],
  ["CR LF", "%0d%0a"],
  ["no percent-encoding", "%"],
  ["no UTF-8", "%ff%fe"],
  ["SQL", "'%20OR%20'1'%3D'1"],
  ["a wildcard", "%25"],
  ["null", "null"],
  ["undefined", "undefined"],
  ["a prototype", "__proto__"],
  ["10 kB", "x".repeat(LONG_ID_CHARS)],
];

/** A well-formed id that belongs to no resource. */
function absentLike(id: string): string {
  return `${id.slice(0, -8)}${"0".repeat(8)}`;
}

const TARGETS: readonly Target[] = [
  { name: "own", owner: "home", fresh: true, value: (own) => own },
  { name: "a sibling project's", owner: "sibling", fresh: false, value: (_own, sibling) => sibling },
  { name: "another account's", owner: "stranger", fresh: false, value: (_own, _sibling, other) => other },
  { name: "absent", owner: "nobody", fresh: false, value: absentLike },
  { name: "own and NUL", owner: "nobody", fresh: false, value: (own) => `${own}%00` },
  { name: "own and a space", owner: "nobody", fresh: false, value: (own) => `${own}%20` },
  { name: UPPER_CASE, owner: "nobody", fresh: false, value: (own) => own.toUpperCase() },
  ...MALFORMED.map(([name, text]): Target => ({ name, owner: "nobody", fresh: false, value: () => text })),
];

/** Returns whether the caller can see the target. */
function sees(credential: Credential, operation: Operation, { owner }: Target): boolean {
  return owner === "home" || (owner === "sibling" && credential.wide(operation));
}

/** Tokens that are accepted in any letter case, because mail systems may change it in transit. */
const CASE_BLIND: ReadonlySet<string> = new Set(["/u", "/o"]);

/** Tracking links in messages, which record a visit although they use GET. */
const RECORDING: ReadonlySet<string> = new Set(["/o", "/c"]);

/** Collections of the account, which belong to no project. */
const OF_ACCOUNT: ReadonlySet<string> = new Set(["/v1/routes", "/v1/members", "/v1/members/{}/sessions"]);

/** Returns the targets to test in a segment of the operation's path. */
export function targetsOf(operation: Operation, segment: number): readonly Target[] {
  const collection = operation.pathParams[segment]?.collection ?? "";
  const caseBlind = CASE_BLIND.has(collection);
  // If an operation needs no key, the token in the path is the credential. The token of another project acts for
  // that project.
  const capability = operation.level === "open" && (operation.method !== "GET" || RECORDING.has(collection));
  return TARGETS.filter(
    ({ name, owner }) =>
      !(caseBlind && name === UPPER_CASE) &&
      !(OF_ACCOUNT.has(collection) && owner === "sibling") &&
      !(capability && (owner === "sibling" || owner === "stranger")),
  );
}

/**
 * Returns the statuses that the rules give a cell of the matrix. `target` is null if the operation's path has no
 * segment.
 */
export function expectedStatuses(
  operation: Operation,
  credential: Credential,
  target: Target | null,
): readonly number[] {
  if (operation.level === "open")
    return target === null || target.owner !== "nobody" ? operation.successes : [404];
  const refusal = credential.refusal(operation);
  if (refusal !== null) return [refusal];
  if (target !== null && !sees(credential, operation, target)) return [404];
  const tooFew = credential.tooFew?.(operation) ?? null;
  return tooFew === null ? operation.successes : [tooFew];
}
