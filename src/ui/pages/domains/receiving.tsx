import { get, patch } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { CheckedRecord, DnsRecord, FullDomain, Receiving } from "../../api/setup-types.ts";
import { useTask } from "../../components/form.tsx";
import { Problem } from "../../components/problem.tsx";
import { can } from "../../state/session.ts";
import { Records } from "./records.tsx";

interface ReceivingProps {
  domain: FullDomain;
  /** Records for receiving that a check has just looked at; may be empty. */
  checked: readonly (DnsRecord | CheckedRecord)[];
  path: string;
  onChanged: (enabled: boolean) => void;
}

/** The state of receiving at the domain, the switch for it, and the MX record that brings the mail. */
export function ReceivingPart({ domain, checked, path, onChanged }: ReceivingProps) {
  const { id, receiving: enabled, status } = domain;
  const receiving = useResource(`receiving ${id}`, () => get<Receiving>(`${path}/receiving`));
  const task = useTask();
  const turn = () =>
    task.run(async () => {
      receiving.set(await patch<Receiving>(`${path}/receiving`, { enabled: !enabled }));
      onChanged(!enabled);
    });
  const records = checked.length > 0 ? checked : (receiving.value.value?.records ?? []);
  return (
    <section class="detail-part" aria-label="Receiving">
      <div class="part-head">
        <h3>Receiving</h3>
        <button
          type="button"
          class="switch"
          role="switch"
          aria-checked={enabled}
          aria-label="Receive mail for this domain"
          disabled={task.busy.value || status === "pending" || !can("domains:write")}
          onClick={() => void turn()}
        >
          <span class="switch-track" aria-hidden="true" />
          {enabled ? "On" : "Off"}
        </button>
      </div>
      <p class="quiet">
        {status === "pending"
          ? "The domain can receive mail once it is verified."
          : enabled
            ? "Mail to inboxes of this domain is received. It needs this record."
            : "Mail to this domain is refused."}
      </p>
      <Problem error={task.error.value} />
      <Problem error={receiving.error.value} onRetry={receiving.reload} />
      {enabled ? <Records records={records} needed={domain.verifiedBy !== "capture"} /> : null}
    </section>
  );
}
