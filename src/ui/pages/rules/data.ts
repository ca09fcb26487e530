import { get } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Inbox, Labelling, Page, Rule, Template } from "../../api/types.ts";
import type { RuleNames } from "../../words/rules.ts";
import { useMailbox } from "../inboxes/mailbox.ts";
import { useTemplates } from "../messages/template.tsx";

/** Rules of one answer. A project has at most 200, so two answers have all. */
const PER_ANSWER = 100;
const MAX_ANSWERS = 2;

/** Reads all rules of the project, in their order. */
export async function readRules(): Promise<Rule[]> {
  const rules: Rule[] = [];
  let cursor: string | null = null;
  for (let answer = 0; answer < MAX_ANSWERS; answer++) {
    const page: Page<Rule> = await get("/v1/rules", { limit: PER_ANSWER, cursor });
    rules.push(...page.data);
    cursor = page.nextCursor;
    if (cursor === null) break;
  }
  return rules;
}

/** Returns all rules of the project, in their order. */
export function useRules(): Resource<Rule[]> {
  return useResource("rules", readRules);
}

/** The things that rules name by ids. Empty lists if the reader may not see them. */
interface Named {
  inboxes: readonly Inbox[];
  members: Labelling["members"];
  templates: readonly Template[];
}

/** Reads what rules name, for sentences and forms. */
export function useNamed(): Named {
  const inboxes = useResource("inboxes", () => get<{ data: Inbox[] }>("/v1/inboxes"));
  const { members = [] } = useMailbox().value.value ?? {};
  const { data: templates = [] } = useTemplates().value.value ?? {};
  return { inboxes: inboxes.value.value?.data ?? [], members, templates };
}

/** Returns the names for ids. What is not known keeps its id. */
export function namesOf({ members, templates }: Named): RuleNames {
  return {
    member: (id) => members.find((member) => member.id === id)?.email ?? id,
    template: (id) => templates.find((template) => template.id === id || template.slug === id)?.name ?? id,
  };
}
