import type { FullDomain } from "../../api/setup-types.ts";
import { Dot } from "../../components/status.tsx";

/** The state of a domain as a dot with its word. */
export function DomainStatus({ status }: Pick<FullDomain, "status">) {
  return status === "verified" ? <Dot tone="good" word="Verified" /> : <Dot tone="late" word="Pending" />;
}
