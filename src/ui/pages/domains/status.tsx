import type { Domain } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";

/** The state of a domain as a dot with its word. */
export function DomainStatus({ status }: Pick<Domain, "status">) {
  return status === "verified" ? <Dot tone="good" word="Verified" /> : <Dot tone="late" word="Pending" />;
}
