import { get } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { Problem } from "../../controls/problem.tsx";
import { LocalTime } from "../../components/time.tsx";
import { countText, sizeText } from "../../words/amounts.ts";
import { capitalized } from "../../words/case.ts";

/** Use of a limit; null: there is none. */
interface Held {
  used: number;
  limit: number | null;
}

/** `GET /v1/quota`. */
interface Quota extends Held {
  resetAt: string;
  resources: Record<string, Held>;
}

const NAMES: Readonly<Record<string, string>> = {
  storedOctets: "Storage",
  apiKeys: "API keys",
};

/** Share of a limit from which it is marked. */
const NEAR = 0.9;

/** Use of a project's limits. */
export function QuotaUse({ id }: { id: string }) {
  const quota = useResource(`quota ${id}`, () => get<Quota>("/v1/quota", {}, { project: id }));
  const found = quota.value.value;
  return (
    <section class="detail-part" aria-label="Use">
      <Problem error={quota.error.value} onRetry={quota.reload} />
      {found === null ? null : (
        <table class="table quota">
          <thead>
            <tr>
              <th scope="col">Use</th>
              <th scope="col" class="number">
                used
              </th>
              <th scope="col" class="number">
                limit
              </th>
              <th scope="col">share</th>
            </tr>
          </thead>
          <tbody>
            <Row name="Recipients today" held={found} text={countText} />
            {Object.entries(found.resources).map(([resource, held]) => (
              <Row
                key={resource}
                name={NAMES[resource] ?? capitalized(resource)}
                held={held}
                text={resource === "storedOctets" ? sizeText : countText}
              />
            ))}
          </tbody>
        </table>
      )}
      {found === null ? null : (
        <p class="hint">
          Recipients are counted per UTC day, until <LocalTime at={found.resetAt} /> of your time.
        </p>
      )}
    </section>
  );
}

function Row({
  name,
  held: { used, limit },
  text,
}: {
  name: string;
  held: Held;
  text: (n: number) => string;
}) {
  const share = limit === null || limit === 0 ? 0 : used / limit;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="number">{text(used)}</td>
      <td class="number">{limit === null ? "no limit" : text(limit)}</td>
      <td>
        {limit === null ? null : (
          <progress
            class={share >= NEAR ? "near" : undefined}
            max={Math.max(1, limit)}
            value={Math.min(used, limit)}
            aria-label={`${name}: share of the limit`}
          />
        )}
      </td>
    </tr>
  );
}
