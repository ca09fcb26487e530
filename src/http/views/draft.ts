import { type Static, Type } from "@sinclair/typebox";
import { DraftItem } from "../../core/threads/draft.ts";
import type { Draft, DraftSummary } from "../../store/drafts/drafts.ts";
import { Nullable, showTime, Timestamp } from "../routing/schemas.ts";
import { AuthorView } from "./author.ts";

const COMMON = {
  id: Type.String({ examples: ["drf_01hzy8"] }),
  threadId: Nullable(Type.String({ description: "The thread that it answers.", examples: [null] })),
  author: AuthorView,
  version: Type.Integer({ description: "Counts the changes.", examples: [1] }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

const description = "As it was written. The service checks it when the draft is sent.";
const WrittenAddress = Type.Union([
  Type.String({ examples: ["ana@example.com"] }),
  Type.Object({ email: Type.String(), name: Type.Optional(Type.String()) }),
]);
const Written = Type.Optional(
  Type.Union([...WrittenAddress.anyOf, Type.Array(WrittenAddress)], { description }),
);

/** A draft with all of its fields. */
export const DraftView = Type.Object(
  {
    ...DraftItem.properties,
    from: Written,
    to: Written,
    cc: Written,
    bcc: Written,
    replyTo: Written,
    scheduledAt: Type.Optional(Type.String({ description, examples: ["2026-01-31T09:30:00.000Z"] })),
    ...COMMON,
  },
  { title: "Draft" },
);

/** A draft in a list. */
export const DraftSummaryView = Type.Object(
  {
    ...COMMON,
    to: Type.Array(Type.String()),
    subject: Type.String({ description: "Of a reply without one: that of its thread." }),
    preview: Type.String({ description: "First characters of the text." }),
  },
  { title: "DraftSummary" },
);

/** Returns a draft as the API shows it. */
export function showDraft({ senderId: _, item, ...draft }: Draft): Static<typeof DraftView> {
  return {
    ...item,
    ...draft,
    createdAt: showTime(draft.createdAt),
    updatedAt: showTime(draft.updatedAt),
  };
}

/** Returns a draft as a list shows it. */
export function showDraftSummary(draft: DraftSummary): Static<typeof DraftSummaryView> {
  return { ...draft, createdAt: showTime(draft.createdAt), updatedAt: showTime(draft.updatedAt) };
}
