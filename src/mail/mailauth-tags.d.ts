/** mailauth's types leave out its reader of tag lists (RFC 6376 §3.2). */
declare module "mailauth/lib/parse-dkim-headers" {
  /** The tags of a whole field by their names; of one that comes twice, the last. */
  export default function parseDkimHeaders(field: Buffer): {
    parsed: Readonly<Record<string, { value: string | number } | undefined>>;
  };
}
