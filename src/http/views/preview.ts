import { Type } from "@sinclair/typebox";
import { OneOf } from "../routing/schemas.ts";

export const PREVIEW_TYPE = "text/html; charset=utf-8";

/** How a preview is shown, as a query. */
export const PREVIEW_QUERY = {
  images: Type.Optional(OneOf(["0", "1"], "`1` loads images of other hosts, which then learn of it.")),
  theme: Type.Optional(OneOf(["light", "dark"], "Default: `light`.")),
};

/**
 * Returns the headers of a preview. In its sandbox a page has a separate origin, runs no script, sends no form,
 * opens no window, never leaves its frame, and takes no focus. It loads nothing except pictures, if `images` is
 * true. Only our own pages may frame it.
 */
export function previewHeaders(images: boolean): Record<string, string> {
  return {
    "content-security-policy": [
      "sandbox",
      "default-src 'none'",
      "style-src 'unsafe-inline'",
      `img-src data:${images ? " https: http:" : ""}`,
      "form-action 'none'",
      "base-uri 'none'",
      "frame-ancestors 'self'",
    ].join("; "),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    // Names in links would be looked up, which tells their owner that the message was opened.
    "x-dns-prefetch-control": "off",
  };
}
