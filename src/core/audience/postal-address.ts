import type { TemplateSource } from "../templates/render.ts";

/** Maximum number of characters of a project's postal address. */
export const MAX_POSTAL_ADDRESS_CHARS = 500;

/** The name of the variable that shows the postal address of the project. */
export const POSTAL_ADDRESS = "postalAddress";
const VARIABLE = /\{\{-?\s*postalAddress\s*-?\}\}/g;

/**
 * Returns a content with the address in place of `{{ postalAddress }}` in its html and text. It has no braces, so it is no Liquid.
 * @param address null: the content stays as it is
 */
export function withPostalAddress(source: TemplateSource, address: string | null): TemplateSource {
  if (address === null) return source;
  const inHtml = Bun.escapeHTML(address).replace(/\r?\n/g, "<br>");
  return {
    ...source,
    html: source.html?.replace(VARIABLE, () => inHtml) ?? null,
    text: source.text?.replace(VARIABLE, () => address) ?? null,
  };
}

/** Returns whether the words that a reader sees have the address. Only letters and digits count: lines and commas may differ. */
export function showsPostalAddress(shown: string, address: string): boolean {
  return plain(shown).includes(plain(address));
}

/** Returns an address without space around it; null if it has no letter or digit. */
export function readPostalAddress(text: string): string | null {
  return plain(text) === "" ? null : text.toWellFormed().trim();
}

function plain(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "");
}
