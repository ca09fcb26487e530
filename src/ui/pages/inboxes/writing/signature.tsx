import type { Inbox } from "../../../api/types.ts";

/** The signature that goes below what is written, as the recipient sees it. */
export function Signature({ inbox, shown }: { inbox: Inbox | undefined; shown: boolean }) {
  if (!shown || inbox === undefined || inbox.signature === "") return null;
  return (
    <pre class="text signature" dir="auto">
      {`-- \n${inbox.signature}`}
    </pre>
  );
}
