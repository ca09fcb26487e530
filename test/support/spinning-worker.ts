// A thread that hangs on every task whose text contains "spin", which no template makes the real one do.
import type { AnyAsked, Rendered, RenderingKind } from "../../src/flows/mime/rendering-tasks.ts";
import type { FromCpu } from "../../src/wiring/cpu/serve.ts";
import { beatAndWork } from "./beating-thread.ts";

beatAndWork<AnyAsked>((id, asked) => {
  if (JSON.stringify(asked).includes("spin")) for (;;);
  const said: FromCpu<Rendered<RenderingKind>> = { id, found: { made: ["done"] } };
  postMessage(said);
});
