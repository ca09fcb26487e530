import { raw } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { INFO, RULES } from "./openapi.ts";
import { type Reference, referenceText, shownOperations } from "./reference-text.ts";

/** A page of the documentation, in Markdown. */
export interface DocPage {
  /** Its name in paths: `/docs/send.md`. */
  name: string;
  text: string;
}

export interface LlmsDeps {
  pages: readonly DocPage[];
  publicUrl: string;
  document: () => Reference;
}

const MARKDOWN = "text/markdown; charset=utf-8";
const PLAIN = "text/plain; charset=utf-8";
const CACHE = { "cache-control": "public, max-age=3600" };
const START = `# ${INFO.title}

> ${INFO.summary}

${RULES}
`;

/**
 * Returns `/llms.txt`, an index for programs that read documentation, `/llms-full.txt`, all of it in one file, and the pages
 * themselves (llmstxt.org).
 */
export function llmsRoutes(deps: LlmsDeps): Route[] {
  return [
    textRoute("/llms.txt", "llmsIndex", "Get an index of the documentation", PLAIN, () => indexText(deps)),
    textRoute("/llms-full.txt", "llmsFull", "Get the whole documentation as one text", PLAIN, () =>
      fullText(deps),
    ),
    ...deps.pages.map(({ name, text }) =>
      textRoute(`/docs/${name}.md`, `page-${name}`, "Get a page of the documentation", MARKDOWN, () =>
        withServedLinks(text),
      ),
    ),
  ];
}

/** Returns the route of a page that is made at its first request. `headers`: more of them. */
export function textRoute(
  path: string,
  operationId: string,
  summary: string,
  contentType: string,
  make: () => string,
  headers: Readonly<Record<string, string>> = {},
): Route {
  let made: string | null = null;
  return openRoute({
    method: "GET",
    path,
    operationId,
    summary,
    answers: { 200: contentType.replace(/;.*/, "") },
    handle() {
      made ??= make();
      return raw(made, contentType, { ...CACHE, ...headers });
    },
  });
}

/** Returns the line of a page in a list, in Markdown. */
export function listItem({ text }: DocPage, url: string): string {
  const about = firstParagraph(text);
  return `- [${headingOf(text)}](${url})${about === "" ? "" : `: ${about}`}`;
}

function indexText({ pages, publicUrl, document }: LlmsDeps): string {
  const docs = pages.map((page) => listItem(page, `${publicUrl}/docs/${page.name}.md`));
  const operations = shownOperations(document()).map(
    ({ method, path, summary }) => `- \`${method} ${path}\`: ${summary}`,
  );
  const whole = [
    `- [All pages and the reference in one file](${publicUrl}/llms-full.txt)`,
    `- [OpenAPI document](${publicUrl}/docs/json)`,
  ];
  return [START, "## Docs\n", ...docs, "", "## API\n", ...whole, ...operations, ""].join("\n");
}

function fullText({ pages, document }: LlmsDeps): string {
  return [START, ...pages.map(({ text }) => withServedLinks(text)), referenceText(document())].join("\n");
}

/** Returns the heading of a page. */
export function headingOf(text: string): string {
  return /^# (.*)$/m.exec(text)?.[1] ?? "";
}

/** Returns the paragraph after the heading in one line. Empty if something else follows. */
function firstParagraph(text: string): string {
  const [, paragraph = ""] = text.split(/\n\n+/);
  // Without the links, because they are relative to the page.
  const plain = paragraph.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll("\n", " ");
  return /^[A-Z]/.test(plain) ? plain : "";
}

/** Makes the links of a page lead to what the service serves. A link to another file of the repository becomes text. */
export function withServedLinks(page: string): string {
  return page
    .replaceAll("](../sdk/README.md", "](sdk.md")
    .replaceAll("](../README.md", "](../llms.txt")
    .replace(/\[([^\]]+)\]\(\.\.\/(?!llms\.txt)[^)]*\)/g, "$1");
}
