import { agree, isIdOf, membersOf, shownTime, shownTimeOrNull, textOf } from "./agree.ts";
import { type Deed, some, someAccount, someProject } from "./choice.ts";
import { ask } from "./request.ts";
import type { Account, Project } from "./state.ts";

const MOST_PROJECTS = 4;

export function emptyProject(
  account: Account,
  facts: Pick<Project, "id" | "externalId" | "name" | "createdAt">,
): Project {
  return {
    account,
    ...facts,
    dailyQuota: null,
    suspendedAt: null,
    liftedAt: null,
    templates: [],
    contacts: [],
    suppressions: [],
    webhooks: [],
    domains: [],
    inboxes: [],
    threads: [],
    messages: [],
    usage: new Map(),
  };
}

export function senderView({ id, externalId, name, dailyQuota, suspendedAt, createdAt }: Project): object {
  const shown = { suspendedAt: shownTimeOrNull(suspendedAt), createdAt: shownTime(createdAt) };
  return { id, externalId, name, dailyQuota, ...shown };
}

export const makeSender: Deed = async (world, chance) => {
  const account = someAccount(world, chance);
  const base = { account, project: null, path: "/v1/senders", scope: "senders:write", wide: true };
  const other = some(chance, account.projects);
  if (other !== undefined && chance.happens(0.3)) {
    const body = { name: "another", externalId: other.externalId };
    await ask(world, chance, { ...base, method: "POST", body }, { status: 409, code: "duplicate" });
    return;
  }
  if (account.projects.length >= MOST_PROJECTS) return;
  const name = `Project ${world.next()}`;
  const externalId = chance.happens(0.5) ? `ext-${world.next()}` : undefined;
  const made = await ask(
    world,
    chance,
    { ...base, method: "POST", body: { name, externalId } },
    { status: 201 },
  );
  const { id, externalId: given } = membersOf(made.body);
  const project = emptyProject(account, {
    id: textOf(id),
    externalId: externalId ?? textOf(given),
    name,
    createdAt: world.stage.clock.now(),
  });
  agree(
    made.body,
    { ...senderView(project), id: isIdOf("snd"), plan: "pro", trustTier: "basic" },
    "the new sender",
  );
  account.projects.push(project);
};

/** Quotas, suspensions and their end. */
export const changeSender: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const { account } = project;
  const now = world.stage.clock.now();
  const path = `/v1/senders/${chance.pick([project.id, project.id, project.externalId])}`;
  const byName = path.endsWith(project.externalId);
  const base = { account, project: null, method: "PATCH", scope: "senders:write", wide: true };
  const change = changeOf(project, chance.below(4), chance.below(12), now);
  // A sender is addressed by its id. The model does not say if its own name works too.
  if (byName) return;
  const changed = await ask(world, chance, { ...base, path, body: change.body }, { status: 200 });
  change.apply();
  agree(changed.body, senderView(project), "the changed sender");
};

function changeOf(
  project: Project,
  kind: number,
  size: number,
  now: number,
): { body: object; apply(): void } {
  if (kind === 0 && project.suspendedAt === null && size < 4)
    return {
      body: { suspendedAt: shownTime(now) },
      apply() {
        project.suspendedAt = now;
      },
    };
  if (kind <= 1)
    return {
      body: { suspendedAt: null },
      apply() {
        if (project.suspendedAt !== null) project.liftedAt = now;
        project.suspendedAt = null;
      },
    };
  if (kind === 2)
    return {
      body: { name: `Renamed ${size}` },
      apply() {
        project.name = `Renamed ${size}`;
      },
    };
  const dailyQuota = size < 4 ? size * 5 : null;
  return {
    body: { dailyQuota },
    apply() {
      project.dailyQuota = dailyQuota;
    },
  };
}

/** A sender of another account does not exist. */
export const readSender: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const account = someAccount(world, chance);
  const path = `/v1/senders/${project.id}`;
  const own = account === project.account;
  const asked = { account, project: null, method: "GET", path, scope: "senders:read", wide: true };
  const read = await ask(world, chance, asked, { status: own ? 200 : 404 });
  if (own) agree(read.body, senderView(project), "the sender");
};
