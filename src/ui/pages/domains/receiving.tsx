import { patch } from "../../api/client.ts";
import type { Resource } from "../../api/resource.ts";
import type { CheckedRecord, DnsRecord, Domain, Receiving } from "../../api/types.ts";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { Switch } from "../../controls/switch.tsx";
import { can } from "../../state/session.ts";
import { Records } from "./records.tsx";

interface ReceivingProps {
  domain: Domain;
  receiving: Resource<Receiving>;
  records: readonly (DnsRecord | CheckedRecord)[];
  path: string;
  onChanged: (enabled: boolean) => void;
}

/** The state of receiving at the domain, the switch for it, and the MX record that brings the mail. */
export function ReceivingPart({ domain, receiving, records, path, onChanged }: ReceivingProps) {
  const { receiving: enabled, status } = domain;
  const task = useTask();
  const turn = () =>
    task.run(async () => {
      receiving.set(await patch<Receiving>(`${path}/receiving`, { enabled: !enabled }));
      onChanged(!enabled);
    });
  return (
    <section class="detail-part" aria-label="Receiving">
      <div class="part-head">
        <h3>Receiving</h3>
        <Switch
          on={enabled}
          label="Receive mail for this domain"
          disabled={task.busy.value || status === "pending" || !can("domains:write")}
          onTurn={() => void turn()}
        />
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

interface WildcardProps {
  domain: Domain;
  path: string;
  onChanged: (domain: Domain) => void;
}

/** The switch by which names below a delegated domain receive too. */
export function WildcardPart({ domain, path, onChanged }: WildcardProps) {
  const task = useTask();
  const { wildcard } = domain;
  if (wildcard === undefined) return null;
  const turn = () => task.run(async () => onChanged(await patch<Domain>(path, { wildcard: !wildcard })));
  return (
    <section class="detail-part" aria-label="Wildcard">
      <div class="part-head">
        <h3>Wildcard</h3>
        <Switch
          on={wildcard}
          label="Receive mail for every name below this domain"
          disabled={task.busy.value || !can("domains:write")}
          onTurn={() => void turn()}
        />
      </div>
      <p class="quiet">
        {wildcard
          ? `Inboxes may be at any name below ${domain.domain}.`
          : `Inboxes are at ${domain.domain} alone.`}
      </p>
      <Problem error={task.error.value} />
    </section>
  );
}
