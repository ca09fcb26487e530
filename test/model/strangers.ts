import type { Chance } from "../support/chance.ts";
import type { Ask, Expected, Presented } from "./request.ts";
import type { Key, World } from "./state.ts";

/** An unauthorized caller, and its error. */
interface Stranger {
  presented: Presented;
  refusal: Expected;
}

const bearer = ({ secret }: Key): Presented => ({ authorization: `Bearer ${secret}` });
const PRODUCT = "X-Service-Product";

/** A random caller without the right, from those the world knows. */
export function strangersOf(world: World, chance: Chance, asked: Ask): Stranger {
  const strangers: [Stranger, ...Stranger[]] = [
    { presented: {}, refusal: { status: 401 } },
    { presented: { authorization: "Bearer pr_00000000_nobody" }, refusal: { status: 401 } },
  ];
  for (const key of asked.account.keys) {
    if (key.revokedAt !== null) strangers.push({ presented: bearer(key), refusal: { status: 401 } });
    else strangers.push(...unscoped(key, asked), ...misnamed(world, key, asked));
  }
  return chance.pick(strangers);
}

/** A key of the project whose scopes lack this one. */
function unscoped(key: Key, { project, scope }: Ask): Stranger[] {
  if (key.scopes.length === 0 || key.scopes.includes(scope)) return [];
  if (key.project !== null && key.project !== project) return [];
  const presented = project === null ? bearer(key) : { ...bearer(key), [PRODUCT]: project.id };
  return [{ presented, refusal: { status: 403, code: "missing_scope", param: scope } }];
}

/** A key that names its project wrongly. */
function misnamed(world: World, key: Key, asked: Ask): Stranger[] {
  const { project, account, scope } = asked;
  // If a key lacks both scope and project, the reported reason is left open.
  if (key.scopes.length > 0 && !key.scopes.includes(scope)) return [];
  if (project === null)
    return asked.wide === true && key.project !== null && key.scopes.length === 0
      ? [{ presented: bearer(key), refusal: { status: 403 } }]
      : [];
  const foreign = world.accounts.find((other) => other !== account)?.projects[0];
  const names = [foreign?.id ?? "snd_none", "no such project"];
  if (key.project !== null)
    return [
      ...names,
      ...account.projects.filter((other) => other !== key.project).map(({ externalId }) => externalId),
    ].map((name) => ({ presented: { ...bearer(key), [PRODUCT]: name }, refusal: { status: 403 } }));
  return [
    { presented: bearer(key), refusal: { status: 400, param: PRODUCT } },
    {
      presented: { ...bearer(key), [PRODUCT]: project.id, "X-Service-Sender": "another" },
      refusal: { status: 400 },
    },
    ...names.map((name) => ({ presented: { ...bearer(key), [PRODUCT]: name }, refusal: { status: 404 } })),
  ];
}
