import { type Deed, some } from "./choice.ts";
import { ask } from "./request.ts";
import { type Project, projectsOf } from "./state.ts";

/** The requests for a resource by its id: method, path, scope, and a body if one is needed. */
type Request = readonly [method: string, path: string, scope: string, body?: object];

function requestsFor(project: Project, pick: <Item>(items: readonly Item[]) => Item | undefined): Request[] {
  const id = (items: readonly { id: string }[]): string =>
    pick(items.filter((item) => item.id !== ""))?.id ?? "none";
  const { templates, contacts, webhooks, domains, inboxes, threads, messages } = project;
  const webhook = pick(webhooks);
  const delivery = webhook === undefined ? undefined : pick(webhook.deliveries);
  const slug = pick(templates)?.slug;
  return [
    ["GET", `/v1/emails/${id(messages)}`, "emails:read"],
    ["GET", `/v1/emails/${id(messages)}/raw`, "emails:read"],
    ["GET", `/v1/emails/${id(messages)}/attempts`, "emails:read"],
    ["PATCH", `/v1/emails/${id(messages)}`, "emails:send", { scheduledAt: "2020-01-01T00:00:00Z" }],
    ["POST", `/v1/emails/${id(messages)}/cancel`, "emails:send"],
    ["GET", `/v1/templates/${id(templates)}`, "templates:read"],
    ["PATCH", `/v1/templates/${id(templates)}`, "templates:write", { name: "Mine" }],
    ["POST", `/v1/templates/${id(templates)}/render`, "templates:read", {}],
    ["DELETE", `/v1/templates/${id(templates)}`, "templates:write"],
    ...(slug === undefined ? [] : ([["DELETE", `/v1/templates/${slug}-none`, "templates:write"]] as const)),
    ["GET", `/v1/contacts/${id(contacts)}`, "contacts:read"],
    ["PATCH", `/v1/contacts/${id(contacts)}`, "contacts:write", { firstName: "Mine" }],
    ["POST", `/v1/contacts/${id(contacts)}/unsubscribe`, "contacts:write"],
    ["POST", `/v1/contacts/${id(contacts)}/resubscribe`, "contacts:write"],
    ["DELETE", `/v1/contacts/${id(contacts)}`, "contacts:write"],
    ["GET", `/v1/webhooks/${id(webhooks)}`, "webhooks:read"],
    ["PATCH", `/v1/webhooks/${id(webhooks)}`, "webhooks:write", { enabled: false }],
    ["POST", `/v1/webhooks/${id(webhooks)}/rotate-secret`, "webhooks:write", {}],
    ["POST", `/v1/webhooks/${id(webhooks)}/test`, "webhooks:write", {}],
    ["GET", `/v1/webhooks/${id(webhooks)}/deliveries`, "webhooks:read"],
    ["POST", `/v1/webhooks/${id(webhooks)}/deliveries/${delivery?.id ?? "none"}/replay`, "webhooks:write"],
    ["DELETE", `/v1/webhooks/${id(webhooks)}`, "webhooks:write"],
    ["GET", `/v1/domains/${id(domains)}`, "domains:read"],
    ["POST", `/v1/domains/${id(domains)}/verify`, "domains:write"],
    ["POST", `/v1/domains/${id(domains)}/rotate-dkim`, "domains:write"],
    ["PATCH", `/v1/domains/${id(domains)}/receiving`, "domains:write", { enabled: false }],
    ["GET", `/v1/domains/${id(domains)}/receiving`, "domains:read"],
    ["DELETE", `/v1/domains/${id(domains)}`, "domains:write"],
    ["GET", `/v1/inboxes/${id(inboxes)}`, "inboxes:read"],
    ["PATCH", `/v1/inboxes/${id(inboxes)}`, "inboxes:write", { displayName: "Mine" }],
    ["DELETE", `/v1/inboxes/${id(inboxes)}`, "inboxes:write"],
    ["GET", `/v1/inboxes/${id(inboxes)}/threads`, "threads:read"],
    ["GET", `/v1/threads/${id(threads)}`, "threads:read"],
    ["GET", `/v1/threads/${id(threads)}/messages`, "threads:read"],
    ["POST", `/v1/threads/${id(threads)}/reply`, "threads:reply", { text: "Mine" }],
    ["POST", "/v1/inbound/simulate", "inboxes:write", { inboxId: id(inboxes), text: "Mine" }],
  ];
}

/** Another project's resource does not exist: each request for it answers 404, and has no effect. */
export const trespass: Deed = async (world, chance) => {
  const project = some(chance, projectsOf(world));
  const owner = some(
    chance,
    projectsOf(world).filter((other) => other !== project),
  );
  if (project === undefined || owner === undefined) return;
  const requests = requestsFor(owner, (items) => some(chance, items));
  const request = some(chance, requests);
  if (request === undefined) return;
  const [method, path, scope, body] = request;
  const asked = {
    account: project.account,
    project,
    method,
    path,
    scope,
    ...(body === undefined ? {} : { body }),
  };
  await ask(world, chance, asked, { status: 404 });
};
