import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { AskedLinks } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";

/** Checks the links of a letter only when the person asks for it, because the servers of the links see the requests. */
export function Links({ path }: { path: string }) {
  const task = useTask();
  const links = useSignal<AskedLinks["links"] | null>(null);
  const ask = async () => {
    links.value = (await post<AskedLinks>(`${path}/check-links`)).links;
  };
  const doubtful = links.value?.filter(({ works }) => works !== true) ?? [];
  return (
    <section class="form" aria-label="Links" aria-busy={task.busy.value}>
      <Problem error={task.error.value} />
      <p role="status">
        {links.value === null || doubtful.length > 0 ? null : (
          <Dot tone="good" word={links.value.length === 0 ? "The letter has no links" : "All links work"} />
        )}
      </p>
      <ul class="form" aria-label="Links that may not work">
        {doubtful.map(({ url, works, problem }) => (
          <li key={url}>
            <Dot tone={works === false ? "bad" : "late"} word={works === false ? "Broken" : "Not sure"} />
            <p class="cut">{url}</p>
            <p class="hint">{problem}</p>
          </li>
        ))}
      </ul>
      <button type="button" class="button" disabled={task.busy.value} onClick={() => void task.run(ask)}>
        {task.busy.value ? "Asking its links…" : "Check links"}
      </button>
    </section>
  );
}
