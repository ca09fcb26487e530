import { get } from "../api/client.ts";
import { type Resource, useResource } from "../api/resource.ts";
import type { ContactProperty, Page, Segment, Topic } from "../api/types.ts";
import type { Audience } from "../words/filter.ts";
import { can } from "./session.ts";

/** Maximum number of each kind that forms offer. A project has no more properties and topics. */
const OFFERED = 100;

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
