import { Type } from "@sinclair/typebox";
import { Nullable } from "../routing/schemas.ts";

/** The one who wrote a note or a draft. */
export const AuthorView = Type.Object(
  {
    type: Type.String({ description: "`member`, `key`, `cli` or `service`.", examples: ["member"] }),
    id: Nullable(Type.String({ examples: ["mem_01hzy8"] })),
    name: Nullable(
      Type.String({ description: "Address of a member, name of a key.", examples: ["ana@example.com"] }),
    ),
  },
  { title: "Author" },
);
