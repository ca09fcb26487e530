/** mailauth's types leave out its body hashes, which ours are compared with. */
declare module "mailauth/lib/dkim/body" {
  export function dkimBody(
    canonicalization: string,
    algorithm: string,
    length: number | "",
  ): { update(chunk: Buffer): void; digest(encoding: "base64"): string };
}
