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

/** A draft with all of its fields. */
export const DraftView = Type.Object({ ...DraftItem.properties, ...COMMON }, { title: "Draft" });

/** A draft in a list. */
export const DraftSummaryView = Type.Object(
  {
    ...COMMON,
    to: Type.Array(Type.String()),
    subject: Type.String(),
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
