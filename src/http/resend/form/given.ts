/** Schemas of the bodies of Resend's API. Each text, list and map of a body has a limit, which is checked before a translation. */
import { type TSchema, Type } from "@sinclair/typebox";
import { MAX_BODY_PART_BYTES } from "../../../core/messages/send-rules.ts";
import { expectationOf } from "../../../core/expectations.ts";
import { MAX_NAME_CHARS } from "../../routing/schemas.ts";

/** Maximum characters of an id, and of a name in a path. */
const MAX_ID_CHARS = 64;
/** Maximum characters of an address with its display name. */
const MAX_ADDRESS_CHARS = 1000;
/** Maximum number of values of a contact's properties, or of a template's variables in a send. */
const MAX_VALUES = 1000;

/** Returns the schema of a field that may be left out. Null is the same as no value. */
export function Given<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()], { expected: expectationOf(schema) }));
}

export const Id = Type.String({ maxLength: MAX_ID_CHARS });
export const ShortText = Type.String({ maxLength: MAX_NAME_CHARS });
export const AddressText = Type.String({ maxLength: MAX_ADDRESS_CHARS, expected: "an address" });
/** Html or text of a message or a template. */
export const Part = Type.String({ maxLength: MAX_BODY_PART_BYTES });

/** Values by name. */
export const Values = Type.Record(
  Type.String(),
  Type.Union([Part, Type.Number(), Type.Boolean(), Type.Null()], { expected: "a string or a number" }),
  { maxProperties: MAX_VALUES },
);

/** The body of a route that reads none. */
export const NO_FIELDS = Type.Unknown();
