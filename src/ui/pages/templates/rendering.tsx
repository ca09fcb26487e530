import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { type ApiError, asApiError } from "../../api/error.ts";
import type { Rendered } from "../../api/types.ts";
import { after } from "../../browser/clock.ts";
import { PagePreview } from "../../components/preview.tsx";
import { Problem } from "../../controls/problem.tsx";
import { parseData } from "../../words/sample-data.ts";

/** The template is rendered after a pause in typing of this length. */
const PAUSE_MS = 250;

interface Shown extends Rendered {
  /** The page of the html; null if there is none. */
  url: string | null;
}

interface RenderingProps {
  subject: string;
  html: string;
  text: string;
  /** JSON that fills it. */
  data: string;
  /** Adds variables to the data. Absent: there is no place for them. */
  onMissing?: (missing: readonly string[]) => void;
}

/** The template filled with the data, as a recipient sees it. */
export function Rendering({ subject, html, text, data, onMissing }: RenderingProps) {
  const shown = useSignal<Shown | null>(null);
  const error = useSignal<ApiError | null>(null);
  const parsed = parseData(data);
  useEffect(() => {
    if (parsed === null) return;
    let current = true;
    const cancel = after(shown.peek() === null ? 0 : PAUSE_MS, async () => {
      try {
        const next = await render({
          subject,
          html: html === "" ? null : html,
          text: text === "" ? null : text,
          data: parsed,
        });
        if (!current) return;
        shown.value = next;
        error.value = null;
      } catch (thrown) {
        if (current) error.value = asApiError(thrown);
      }
    });
    return () => {
      current = false;
      cancel();
    };
  }, [subject, html, text, data]);
  const found = shown.value;
  return (
    <section class="rendering" aria-label="Preview">
      <Problem error={error.value} />
      {parsed === null ? <p class="field-error">The data is no JSON object, so the preview waits.</p> : null}
      {found === null ? null : (
        <>
          <h2 dir="auto">{found.subject === "" ? "(no subject)" : found.subject}</h2>
          {found.missing.length === 0 ? null : (
            <p class="missing" role="status">
              <span>The data lacks</span>
              {found.missing.map((name) => (
                <code key={name} class="tag">
                  {name}
                </code>
              ))}
              {onMissing === undefined ? null : (
                <button type="button" class="button small" onClick={() => onMissing(found.missing)}>
                  Add to the data
                </button>
              )}
            </p>
          )}
          {found.url === null ? null : <PagePreview path={found.url} title="Html of the template" />}
          {found.text === null ? null : (
            <>
              <h3>Text</h3>
              <pre class="text" dir="auto">
                {found.text}
              </pre>
            </>
          )}
        </>
      )}
    </section>
  );
}

/** Renders a draft, and makes a page of its html that a frame can load. */
async function render(draft: object): Promise<Shown> {
  const rendered = await post<Rendered>("/v1/templates/preview", draft);
  if (rendered.html === null) return { ...rendered, url: null };
  const { url } = await post<{ url: string }>("/ui/preview", { html: rendered.html }, { account: true });
  return { ...rendered, url };
}
