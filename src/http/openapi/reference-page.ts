import { createHash } from "node:crypto";
import { INFO } from "./openapi.ts";

// The page comes from @elysiajs/swagger's Scalar provider. The rest of its plugin is not used. Its document shows
// what Elysia checks, which is nothing here, and its routes would miss the access log, the metrics and 405.

/** The page's configuration. Parts of Scalar that talk to its makers' servers are off. */
const CONFIGURATION = {
  url: "/docs/json",
  // No theme of the plugin.
  customCss: "",
  documentDownloadType: "direct",
  authentication: { preferredSecurityScheme: "apiKey" },
  orderSchemaPropertiesBy: "preserve",
  persistAuth: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
} as const;

/**
 * Returns the reference page, whose script is at the path `script`. Its only inline script tag holds the configuration as
 * attributes.
 */
export async function referencePage(script: string): Promise<string> {
  const { ScalarRender } = await import("@elysiajs/swagger/scalar");
  return ScalarRender({ ...INFO, description: INFO.summary }, "", CONFIGURATION, script);
}

/**
 * Returns the policy of the page. It loads nothing from other origins. The only inline script that may run is the
 * white space in the page's own script tag, so text that is stored cannot run either (XSS).
 */
export function referencePolicy(page: string): string {
  const inline = /<script(?![^>]*\ssrc=)[^>]*>([^<]*)<\/script>/.exec(page)?.[1] ?? "";
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash("sha256").update(inline).digest("base64")}'`,
    // The script of the page adds style elements and sets style attributes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
