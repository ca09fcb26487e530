interface Tag {
  name: string;
  description: string;
  /** First segments of the paths, after the version. */
  segments: readonly string[];
}

/** Groups of operations, in the order in which the reference shows them. */
const TAGS: readonly Tag[] = [
  {
    name: "emails",
    description: "Send messages, and read what was sent and received.",
    segments: ["emails"],
  },
  { name: "templates", description: "Messages with placeholders.", segments: ["templates"] },
  {
    name: "inboxes",
    description: "Addresses that receive mail.",
    segments: ["inboxes", "inbound", "rules", "forward-addresses"],
  },
  { name: "threads", description: "Conversations of an inbox, and drafts.", segments: ["threads", "drafts"] },
  { name: "domains", description: "Domains that send and receive.", segments: ["domains"] },
  { name: "webhooks", description: "Events, pushed to an endpoint of yours.", segments: ["webhooks"] },
  { name: "events", description: "Events, as they happen.", segments: ["events"] },
  {
    name: "contacts",
    description: "Recipients with a subscription.",
    segments: ["contacts", "contact-properties", "topics", "segments", "broadcasts", "imports"],
  },
  {
    name: "suppressions",
    description: "Addresses that the project does not send to.",
    segments: ["suppressions"],
  },
  {
    name: "account",
    description: "Keys, projects, figures and limits.",
    segments: ["api-keys", "senders", "me", "account", "stats", "quota", "health", "settings", "members"],
  },
  {
    name: "links",
    description: "Links in messages. They need no key.",
    segments: ["u", "o", "c", "a", "f", "j"],
  },
  { name: "service", description: "The service itself.", segments: [""] },
];

/** Returns the name of the group that an operation with the path belongs to. */
export function tagOf(path: string): string {
  const [first = ""] = path.split("/").filter((segment) => segment !== "" && segment !== "v1");
  return TAGS.find(({ segments }) => segments.includes(first))?.name ?? "service";
}

/** Returns the groups that have an operation, as the document lists them. */
export function shownTags(paths: readonly string[]): Omit<Tag, "segments">[] {
  const used = new Set(paths.map(tagOf));
  return TAGS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }));
}
