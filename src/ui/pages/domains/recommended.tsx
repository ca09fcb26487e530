import type { Domain } from "../../api/types.ts";
import { Records } from "./records.tsx";

/** The records that make mail of a domain its own, each with its state. Sending does not wait for them. */
export function RecommendedPart({ domain: { recommended, verifiedBy } }: { domain: Domain }) {
  return (
    <section class="detail-part" aria-label="Recommended records">
      <div class="part-head">
        <h3>Recommended</h3>
      </div>
      <p class="quiet">
        Your mail is sent without these records. With them, its return path and links are at your domain.
      </p>
      <Records records={recommended} needed={verifiedBy !== "capture"} isOptional />
    </section>
  );
}
