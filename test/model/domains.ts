import type { Chance } from "../support/chance.ts";
import { agree, differ, isIdOf, itemsOf, membersOf, textOf } from "./agree.ts";
import { type Deed, some, someOf, someProject } from "./choice.ts";
import { type Ask, ask, NEVER } from "./request.ts";
import { SERVICE_DOMAIN } from "./stage.ts";
import { DAY_MS, type Domain, type Project, projectsOf, type World } from "./state.ts";

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" ? "domains:read" : "domains:write";
  return { account: project.account, project, method, path: `/v1/domains${path}`, scope };
}

/** The CNAMEs shown while a key replaces another are left open. */
export function domainView({ id, name, status, records, rotatedAt }: Domain): object {
  const view = { id, domain: name, status };
  if (rotatedAt !== null) return view;
  return { ...view, records: records.map((record) => ({ ...record })) };
}

/** The records that a new domain needs. */
function firstRecords(name: string): object[] {
  const isOurs = (text: unknown) => typeof text === "string" && text.endsWith(`.dkim.${SERVICE_DOMAIN}`);
  const dmarc = `v=DMARC1; p=none; rua=mailto:dmarc@${SERVICE_DOMAIN}`;
  return [
    { type: "CNAME", name: `pr1._domainkey.${name}`, value: isOurs, purpose: "dkim", verified: false },
    {
      type: "TXT",
      name,
      value: `v=spf1 include:spf.${SERVICE_DOMAIN} ~all`,
      purpose: "spf",
      verified: false,
    },
    { type: "TXT", name: `_dmarc.${name}`, value: dmarc, purpose: "dmarc", verified: false },
  ];
}

function recordsOf(body: unknown): Domain["records"] {
  return itemsOf(membersOf(body).records).map((record) => {
    const { type, name, value } = membersOf(record);
    return { type: textOf(type), name: textOf(name), value: textOf(value) };
  });
}

const isPublished = ({ stage }: World, { type, name, value }: Domain["records"][number]): boolean =>
  stage.zone.get(`${type} ${name}`)?.includes(value) === true;

function publish({ stage }: World, records: Domain["records"]): void {
  for (const { type, name, value } of records) stage.zone.set(`${type} ${name}`, [value]);
}

const REFUSED = ["co.uk", SERVICE_DOMAIN, `sub.${SERVICE_DOMAIN}`, "no domain", "localhost"] as const;

export const makeDomain: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const { account } = project;
  const place = world.accounts.indexOf(account);
  const name = `mail${chance.below(5)}.account${place}.example.net`;
  const domain = chance.happens(0.2) ? name.toUpperCase() : name;
  const request = { ...base(project, "POST", ""), body: { domain } };
  if (chance.happens(0.1)) {
    const body = { domain: chance.pick(REFUSED) };
    await ask(world, chance, { ...request, body }, { status: 422, param: "domain" });
    return;
  }
  if (account.projects.some(({ domains }) => domains.some((other) => other.name === name))) {
    await ask(world, chance, request, { status: 409, code: "duplicate" });
    return;
  }
  const made = await ask(world, chance, request, { status: 201 });
  const id = textOf(membersOf(made.body).id);
  agree(
    made.body,
    { id: isIdOf("dom"), domain: name, status: "pending", records: firstRecords(name) },
    "the domain",
  );
  project.domains.push({
    id,
    name,
    status: "pending",
    receiving: false,
    records: recordsOf(made.body),
    rotatedAt: null,
    createdAt: world.stage.clock.now(),
  });
};

/** Registers a domain, publishes its records and verifies it, so that a project can send. */
export async function registerVerified(world: World, project: Project, domain: string): Promise<Domain> {
  const made = await ask(world, NEVER, { ...base(project, "POST", ""), body: { domain } }, { status: 201 });
  const id = textOf(membersOf(made.body).id);
  const verified: Domain = {
    id,
    name: domain,
    status: "verified",
    receiving: false,
    records: recordsOf(made.body),
    rotatedAt: null,
    createdAt: world.stage.clock.now(),
  };
  publish(world, verified.records);
  const checked = await ask(world, NEVER, base(project, "POST", `/${id}/verify`), { status: 200 });
  agree(checked.body, domainView(verified), "the verified domain");
  project.domains.push(verified);
  return verified;
}

/** A check reads DNS as it is now. A verified record is never removed here, because its effects take 72 hours. */
export const verifyDomain: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ domains }) => domains);
  if (found === null) return;
  const { project, item } = found;
  if (chance.happens(0.7)) publish(world, item.records);
  else
    publish(
      world,
      item.records.filter(() => chance.happens(0.5)),
    );
  const verified = await ask(world, chance, base(project, "POST", `/${item.id}/verify`), { status: 200 });
  const flags = item.records.map((record) => isPublished(world, record));
  if (flags.every(Boolean)) item.status = "verified";
  const mx = { type: "MX", name: item.name, value: `mx.${SERVICE_DOMAIN}` };
  const records = [
    ...item.records.map((record, at) => ({ ...record, verified: flags[at] })),
    // A check of a domain that receives shows its MX record too.
    ...(item.receiving ? [mx] : []),
  ];
  agree(
    verified.body,
    { ...domainView(item), ...(item.rotatedAt === null ? { records } : {}) },
    "the checked domain",
  );
  if (item.status === "verified")
    agree(
      membersOf(verified.body).authHealth,
      { dkim: "verified", spf: "verified", dmarc: "verified" },
      "its health",
    );
};

/** The background check may find records published since. It never verifies anything else. */
export const chores: Deed = async (world) => {
  world.trace.push("chores");
  await world.stage.chores();
  const rows = await world.stage.db.all<{ id: string; status: Domain["status"] }>(
    "SELECT id, status FROM domains",
  );
  const statuses = new Map(rows.map(({ id, status }) => [id, status]));
  for (const domain of projectsOf(world).flatMap(({ domains }) => domains)) {
    const status = statuses.get(domain.id) ?? differ(`the domain ${domain.id} is gone`);
    const may = domain.status === "verified" || domain.records.every((record) => isPublished(world, record));
    if (!may || domain.status === "verified") agree(status, domain.status, `the status of ${domain.name}`);
    domain.status = status;
  }
};

export const readDomain: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ domains }) => domains);
  if (found === null) return;
  const { project, item } = found;
  const read = await ask(world, chance, base(project, "GET", `/${item.id}`), { status: 200 });
  agree(read.body, domainView(item), "the domain");
  const state = await ask(world, chance, base(project, "GET", `/${item.id}/receiving`), { status: 200 });
  agree(state.body, { enabled: item.receiving }, "its receiving state");
};

export const turnReceiving: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ domains }) => domains);
  if (found === null) return;
  const { project, item } = found;
  const enabled = chance.happens(0.7);
  const request = { ...base(project, "PATCH", `/${item.id}/receiving`), body: { enabled } };
  if (enabled && item.status === "pending") {
    await ask(world, chance, request, { status: 409, code: "invalid_state" });
    return;
  }
  const mx = { type: "MX", name: item.name, value: `mx.${SERVICE_DOMAIN}`, priority: 10, purpose: "inbound" };
  const turned = await ask(world, chance, request, { status: 200 });
  item.receiving = enabled;
  agree(turned.body, { enabled, ...(enabled ? { records: [mx] } : {}) }, "the receiving state");
};

export const dropDomain: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ domains }) => domains);
  if (found === null) return;
  const { project, item } = found;
  const request = base(project, "DELETE", `/${item.id}`);
  if (project.inboxes.some(({ domain }) => domain === item)) {
    await ask(world, chance, request, { status: 409 });
    return;
  }
  await ask(world, chance, request, { status: 204 });
  project.domains.splice(project.domains.indexOf(item), 1);
  await ask(world, chance, base(project, "GET", `/${item.id}`), { status: 404 });
};

/** A second rotation must wait until the previous key is no longer published, seven days at least. */
export const rotateDkim: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ domains }) => domains.filter(({ status }) => status === "verified"));
  if (found === null) return;
  const { project, item } = found;
  const now = world.stage.clock.now();
  const request = base(project, "POST", `/${item.id}/rotate-dkim`);
  if (item.rotatedAt !== null) {
    if (now - item.rotatedAt < 7 * DAY_MS)
      await ask(world, chance, request, { status: 409, code: "invalid_state" });
    return;
  }
  const rotated = await ask(world, chance, request, { status: 200 });
  item.rotatedAt = now;
  item.records = recordsOf(rotated.body);
  const names = item.records.filter(({ type }) => type === "CNAME").map(({ name }) => name);
  agree(
    names.sort(),
    [`pr1._domainkey.${item.name}`, `pr2._domainkey.${item.name}`],
    "the CNAMEs after a rotation",
  );
  publish(world, item.records);
};

/** A verified domain of the project, or undefined if it has none. */
export function sendingDomain(chance: Chance, { domains }: Project): Domain | undefined {
  return some(
    chance,
    domains.filter(({ status }) => status === "verified"),
  );
}
