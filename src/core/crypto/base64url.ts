/**
 * Decodes base64url without padding (RFC 4648 §5). Returns null for any other spelling of the same bytes, such as a trailing `=`:
 * a token must have one form.
 */
export function fromBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : null;
}
