import { agree, differ, isIdOf, membersOf, shownTime, shownTimeOrNull, textOf } from "./agree.ts";
import { type Deed, some, someAccount, subset } from "./choice.ts";
import { type Ask, ask, mayAsk } from "./request.ts";
import type { Key } from "./state.ts";

const SCOPES = [
  "emails:send",
  "emails:read",
  "templates:read",
  "templates:write",
  "contacts:read",
  "contacts:write",
  "domains:read",
  "domains:write",
  "inboxes:read",
  "inboxes:write",
  "threads:read",
  "threads:reply",
  "suppressions:read",
  "suppressions:write",
  "webhooks:read",
  "webhooks:write",
  "api_keys:read",
  "api_keys:write",
  "senders:read",
  "senders:write",
  "metrics:read",
];

/** The listed fields of a key. */
export function keyView({ id, name, secret, project, scopes, revokedAt, createdAt }: Key): object {
  return {
    id,
    name,
    scopes,
    last4: secret.slice(-4),
    keyPrefix: (text: unknown) => typeof text === "string" && secret.startsWith(text) && text.length <= 11,
    senderId: project?.id ?? null,
    ...(project === null ? {} : { senderExternalId: project.externalId }),
    revokedAt: shownTimeOrNull(revokedAt),
    createdAt: shownTime(createdAt),
    secret: undefined,
  };
}

/** A key made by another key, which can have no more rights than that. */
export const makeKey: Deed = async (world, chance) => {
  const account = someAccount(world, chance);
  const base: Ask = {
    account,
    project: null,
    method: "POST",
    path: "/v1/api-keys",
    scope: "api_keys:write",
  };
  const by = some(
    chance,
    account.keys.filter((key) => mayAsk(key, base)),
  );
  if (by === undefined) return;
  const project = chance.happens(0.7) ? (by.project ?? some(chance, account.projects) ?? null) : null;
  const scopes = chance.happens(0.5) ? [] : subset(chance, by.scopes.length === 0 ? SCOPES : by.scopes);
  const name = `key ${world.next()}`;
  const wanted = { name, ...(project === null ? {} : { senderId: project.id }), scopes };
  if (chance.happens(0.15)) {
    const [body, param] = chance.pick([
      [{ ...wanted, name: undefined }, "name"],
      [{ ...wanted, scopes: ["emails:steal"] }, "scopes[0]"],
    ] as const);
    await ask(world, chance, { ...base, by, body }, { status: 422, param });
    return;
  }
  const tooMuch =
    by.scopes.length > 0 && (scopes.length === 0 || scopes.some((one) => !by.scopes.includes(one)));
  const elsewhere = by.project !== null && project !== by.project;
  if (tooMuch || elsewhere) {
    await ask(world, chance, { ...base, by, body: wanted }, { status: 403 });
    return;
  }
  const made = await ask(world, chance, { ...base, by, body: wanted }, { status: 201 });
  const { secret: shown, id } = membersOf(made.body);
  const secret = textOf(shown);
  if (!/^pr_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/.test(secret)) differ(`${secret} is no secret`);
  const key: Key = {
    id: textOf(id),
    secret,
    name,
    project,
    scopes,
    revokedAt: null,
    createdAt: world.stage.clock.now(),
  };
  agree(made.body, { ...keyView(key), id: isIdOf("key"), secret, lastUsedAt: null }, "the new key");
  account.keys.push(key);
};

/** Returns true if a key with `scopes` may do nothing that a key with `held` may not. */
function isWithin(scopes: readonly string[], held: readonly string[]): boolean {
  return held.length === 0 || (scopes.length > 0 && scopes.every((scope) => held.includes(scope)));
}

/** Revoking takes effect at once. The first key of each account stays, so that requests remain possible. */
export const revokeKey: Deed = async (world, chance) => {
  const account = someAccount(world, chance);
  const key = some(chance, account.keys.slice(1));
  if (key === undefined) return;
  const request: Ask = {
    account,
    project: null,
    method: "DELETE",
    scope: "api_keys:write",
    path: `/v1/api-keys/${key.id}`,
    allows: (by) => (by.project === null || by.project === key.project) && isWithin(key.scopes, by.scopes),
  };
  const again = key.revokedAt;
  await ask(world, chance, request, { status: 204 });
  key.revokedAt = again ?? world.stage.clock.now();
};

/** A project's key neither sees nor revokes keys of other projects. */
export const revokeForeignKey: Deed = async (world, chance) => {
  const account = someAccount(world, chance);
  const by = some(
    chance,
    account.keys.filter((key) => key.project !== null && key.revokedAt === null && key.scopes.length === 0),
  );
  const key = some(
    chance,
    world.accounts.flatMap(({ keys }) => keys).filter((other) => other.project !== by?.project),
  );
  if (by === undefined || key === undefined) return;
  const path = `/v1/api-keys/${key.id}`;
  const request: Ask = { account, project: null, method: "DELETE", path, scope: "api_keys:write", by };
  await ask(world, chance, request, { status: 404 });
};
