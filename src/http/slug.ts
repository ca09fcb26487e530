/** A name as lower-case Latin letters and digits with hyphens between them; "" where it has no letter or digit. */
export function slugOf(name: string, maxChars: number): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, maxChars)
    .replace(/-$/, "");
}
