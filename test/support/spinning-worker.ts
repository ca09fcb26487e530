// A thread that whatever speaks of spinning holds for good: for what no template brings the real one to.
import type { AnyAsked, Rendered, RenderingKind } from "../../src/flows/renderings.ts";
import type { FromThread } from "../../src/wiring/threads/protocol.ts";
import { beatAndWork } from "./beating-thread.ts";

beatAndWork<AnyAsked>((id, asked) => {
  if (JSON.stringify(asked).includes("spin")) for (;;);
  const said: FromThread<Rendered<RenderingKind>> = { id, found: { made: ["done"] } };
  postMessage(said);
});
