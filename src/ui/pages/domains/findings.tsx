import type { CheckedDomain, Domain } from "../../api/types.ts";

/** What a check has found about the whole domain: how its SPF record is evaluated, and what some receivers refuse. */
export function CheckFindings({ domain }: { domain: Domain | CheckedDomain }) {
  if (!("spf" in domain) || domain.verifiedBy === "capture") return null;
  const { spf, warnings } = domain;
  return (
    <>
      <p class="quiet">
        Receivers find SPF <code>{spf.result}</code> for our addresses, with {spf.lookups} of at most 10
        lookups.
      </p>
      {warnings.map((warning) => (
        <p class="record-trouble" key={warning}>
          {warning}
        </p>
      ))}
    </>
  );
}
