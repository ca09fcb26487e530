import { get } from "../api/client.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { ContactProperty, Page, Segment, Topic } from "../api/types.ts";
import type { Subject } from "../words/filter.ts";
import { can } from "./session.ts";

/** Maximum number of each kind that forms offer. A project has no more properties and topics. */
const OFFERED = 100;

/** What contacts can have, and groups of them, for pages that name or offer it. Oldest first. */
export interface Audience {
  properties: readonly ContactProperty[];
  topics: readonly Topic[];
}

const NOTHING: Audience = { properties: [], topics: [] };

/** Returns the properties and topics of the project. Nothing if the key may not read them. */
export function useAudience(): Resource<Audience> {
  return useResource("audience for forms", async () => {
    if (!can("audience:read")) return NOTHING;
    const [properties, topics] = await Promise.all([
      get<Page<ContactProperty>>("/v1/contact-properties", { limit: OFFERED }),
      get<Page<Topic>>("/v1/topics", { limit: OFFERED }),
    ]);
    return { properties: properties.data.toReversed(), topics: topics.data.toReversed() };
  });
}

/** Returns the newest segments for forms that offer them. */
export function useSegments(): Resource<Segment[]> {
  return useResource("segments for forms", async () => {
    if (!can("audience:read")) return [];
    return (await get<Page<Segment>>("/v1/segments", { limit: OFFERED })).data;
  });
}

const FIELDS: readonly Subject[] = [
  { id: "field:email", name: "address", type: "email" },
  { id: "field:createdAt", name: "created", type: "time" },
  { id: "field:subscribed", name: "subscribed", type: "subscribed" },
];

/** Returns what contacts can be filtered by: their fields, and the properties and topics of the project. */
export function subjectsOf({ properties, topics }: Audience): readonly Subject[] {
  return [
    ...FIELDS,
    ...properties.map(({ name, type }) => ({ id: `property:${name}`, name, type })),
    ...topics.map(({ id, name }) => ({ id: `topic:${id}`, name: `“${name}”`, type: "topic" as const })),
  ];
}
