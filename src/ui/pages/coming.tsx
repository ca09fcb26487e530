import { EmptyState } from "../components/empty.tsx";
import { Page } from "../components/page.tsx";
import { codeContext } from "../state/installation.ts";
import { curlText } from "../words/code.ts";

/** Returns a page that shows only how to do its work with a command. */
function coming(title: string, sentence: string, path: string) {
  return function ComingPage() {
    return (
      <Page title={title}>
        <EmptyState command={curlText("GET", path, undefined, codeContext())}>{sentence}</EmptyState>
      </Page>
    );
  };
}

export const TemplatesPage = coming("Templates", "Templates are managed over the API.", "/v1/templates");
export const KeysPage = coming("Keys", "API keys are managed over the API.", "/v1/api-keys");
