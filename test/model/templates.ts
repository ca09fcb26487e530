import type { Chance } from "../support/chance.ts";
import { agree, isIdOf, membersOf, shownTime, textOf } from "./agree.ts";
import { type Deed, someOf, someProject } from "./choice.ts";
import { type Ask, ask } from "./request.ts";
import type { Project, Template, World } from "./state.ts";

/** Sources of templates with the paths they use, in order of first use, and their rendered forms. */
interface Part {
  source: string;
  variables: readonly string[];
  /** Given `{ name: "Ada & Co", user: { city: "Rome" } }`. A body of html is escaped. */
  becomes: string;
  becomesHtml: string;
}

const PARTS: readonly [Part, ...Part[]] = [
  { source: "plain", variables: [], becomes: "plain", becomesHtml: "plain" },
  { source: "Hi {{ name }}!", variables: ["name"], becomes: "Hi Ada & Co!", becomesHtml: "Hi Ada &amp; Co!" },
  {
    source: "{{user.city}} and {{ absent }}",
    variables: ["user.city", "absent"],
    becomes: "Rome and ",
    becomesHtml: "Rome and ",
  },
  {
    source: "{% if name %}yes{% else %}no{% endif %}",
    variables: ["name"],
    becomes: "yes",
    becomesHtml: "yes",
  },
  { source: "{{ name | raw }}", variables: ["name"], becomes: "Ada & Co", becomesHtml: "Ada & Co" },
];
export const TEMPLATE_DATA = { name: "Ada & Co", user: { city: "Rome" } };

interface Draft {
  subject: Part;
  html: Part | null;
  text: Part | null;
}

function draftOf(chance: Chance): Draft {
  const html = chance.happens(0.6) ? chance.pick(PARTS) : null;
  return {
    subject: chance.pick(PARTS),
    html,
    text: html === null || chance.happens(0.5) ? chance.pick(PARTS) : null,
  };
}

function variablesOf({ subject, html, text }: Draft): string[] {
  return [...new Set([subject, html, text].flatMap((part) => part?.variables ?? []))];
}

export interface Rendered {
  subject: string;
  html: string | null;
  text: string | null;
}

function partOf(source: string): Part {
  return PARTS.find((part) => part.source === source) ?? PARTS[0];
}

/** The rendered form of a template with `TEMPLATE_DATA`. */
export function renderedOf({ subject, html, text }: Pick<Template, "subject" | "html" | "text">): Rendered {
  return {
    subject: partOf(subject).becomes,
    html: html === null ? null : partOf(html).becomesHtml,
    text: text === null ? null : partOf(text).becomes,
  };
}

const sourcesOf = ({ subject, html, text }: Draft) => ({
  subject: subject.source,
  html: html?.source ?? null,
  text: text?.source ?? null,
});

export function templateView({ createdAt, updatedAt, ...facts }: Template): object {
  return { ...facts, createdAt: shownTime(createdAt), updatedAt: shownTime(updatedAt) };
}

function base(project: Project, method: string, path: string): Ask {
  const scope = method === "GET" || /render$|preview$/.test(path) ? "templates:read" : "templates:write";
  return { account: project.account, project, method, path: `/v1/templates${path}`, scope };
}

/** A free slug: the wanted one, or if it is taken, with the first free number. */
function freeSlug(project: Project, wanted: string): string {
  const taken = new Set(project.templates.map(({ slug }) => slug));
  for (let n = 1; ; n++) {
    const slug = n === 1 ? wanted : `${wanted}-${n}`;
    if (!taken.has(slug)) return slug;
  }
}

export const makeTemplate: Deed = async (world, chance) => {
  const project = someProject(world, chance);
  const draft = draftOf(chance);
  const name = chance.pick(["Welcome", "Good bye", "Invoice 7"]);
  const slug = chance.happens(0.5) ? `slug-${chance.below(5)}` : undefined;
  const body = { name, slug, ...sourcesOf(draft) };
  if (chance.happens(0.1)) {
    const broken = { ...body, subject: "{{ name" };
    await ask(
      world,
      chance,
      { ...base(project, "POST", ""), body: broken },
      { status: 422, param: "subject" },
    );
    return;
  }
  if (slug !== undefined && project.templates.some((other) => other.slug === slug)) {
    await ask(world, chance, { ...base(project, "POST", ""), body }, { status: 409, code: "duplicate" });
    return;
  }
  const now = world.stage.clock.now();
  const made = await ask(world, chance, { ...base(project, "POST", ""), body }, { status: 201 });
  const derived = freeSlug(project, name.toLowerCase().replaceAll(" ", "-"));
  const template: Template = {
    id: textOf(membersOf(made.body).id),
    name,
    slug: slug ?? derived,
    ...sourcesOf(draft),
    variables: variablesOf(draft),
    createdAt: now,
    updatedAt: now,
  };
  agree(made.body, { ...templateView(template), id: isIdOf("tpl") }, "the new template");
  project.templates.push(template);
};

const byIdOrSlug = (chance: Chance, { id, slug }: Template): string => `/${chance.pick([id, slug])}`;

export const changeTemplate: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ templates }) => templates);
  if (found === null) return;
  const { project, item } = found;
  const draft = draftOf(chance);
  const all = sourcesOf(draft);
  const body = chance.happens(0.5) ? { name: `Named ${world.next()}` } : all;
  const request = { ...base(project, "PATCH", byIdOrSlug(chance, item)), body };
  const changed = await ask(world, chance, request, { status: 200 });
  Object.assign(item, body, { updatedAt: world.stage.clock.now() });
  if (body === all) item.variables = variablesOf(draft);
  agree(changed.body, templateView(item), "the changed template");
};

export const readTemplate: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ templates }) => templates);
  if (found === null) return;
  const { project, item } = found;
  const read = await ask(world, chance, base(project, "GET", byIdOrSlug(chance, item)), { status: 200 });
  agree(read.body, templateView(item), "the template");
};

export const dropTemplate: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ templates }) => templates);
  if (found === null) return;
  const { project, item } = found;
  await ask(world, chance, base(project, "DELETE", byIdOrSlug(chance, item)), { status: 204 });
  project.templates.splice(project.templates.indexOf(item), 1);
  await ask(world, chance, base(project, "GET", `/${item.id}`), { status: 404 });
};

/** A template is rendered with the data. If there is none, all its names are missing. */
export const renderTemplate: Deed = async (world, chance) => {
  const found = someOf(world, chance, ({ templates }) => templates);
  if (found === null) return;
  const { project, item } = found;
  const request = {
    ...base(project, "POST", `${byIdOrSlug(chance, item)}/render`),
    body: { data: TEMPLATE_DATA },
  };
  const rendered = await ask(world, chance, request, { status: 200 });
  const missing = item.variables.filter((path) => path === "absent");
  agree(rendered.body, { ...renderedOf(item), missing }, "the rendered template");
  const bare = await ask(world, chance, { ...request, body: {} }, { status: 200 });
  agree(bare.body, { missing: item.variables }, "what is missing without data");
};

export const previewTemplate: Deed = async (world: World, chance) => {
  const project = someProject(world, chance);
  const draft = draftOf(chance);
  const body = { ...sourcesOf(draft), data: TEMPLATE_DATA };
  const shown = await ask(world, chance, { ...base(project, "POST", "/preview"), body }, { status: 200 });
  agree(shown.body, renderedOf(sourcesOf(draft)), "the preview");
};
