import { Type } from "@sinclair/typebox";
import { OneOf, Timestamp } from "../routing/schemas.ts";

/** The state of a message that was just accepted. */
export const ACCEPTED_STATUS = OneOf(["accepted", "queued"]);

/** The answer to a send. */
export const AcceptedMessage = Type.Object(
  { id: Type.String(), status: ACCEPTED_STATUS, scheduledAt: Type.Optional(Timestamp) },
  { title: "AcceptedMessage" },
);
