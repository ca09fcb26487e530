import { log } from "../../log.ts";
import type { Store } from "../../store/engine/client.ts";
import { claimedKeys, freeClaimedKeys } from "../../store/messages/outbox.ts";
import { claimedDeliveries, freeDeliveries } from "../../store/webhooks/webhook-deliveries.ts";

const CLAIMS_PER_TURN = 2000;

/**
 * Frees claims of this process that no job in it holds, because the write that should have ended them failed. A claim is
 * freed if two turns in a row find it.
 */
export class Orphans {
  readonly #deps: Store;
  readonly #instanceId: string;
  readonly #inHand: (key: string) => boolean;
  #suspects: ReadonlySet<string> = new Set();

  /** @param inHand returns true if this process works on the job with that key */
  constructor(deps: Store, instanceId: string, inHand: (key: string) => boolean) {
    this.#deps = deps;
    this.#instanceId = instanceId;
    this.#inHand = inHand;
  }

  async turn(): Promise<void> {
    const { db, clock } = this.#deps;
    const recipients = await claimedKeys(db, this.#instanceId, CLAIMS_PER_TURN);
    const deliveries = await claimedDeliveries(db, this.#instanceId, CLAIMS_PER_TURN);
    const left = [...recipients.map(({ key }) => key), ...deliveries].filter((key) => !this.#inHand(key));
    const orphans = new Set(left.filter((key) => this.#suspects.has(key)));
    this.#suspects = new Set(left);
    if (orphans.size === 0) return;
    const now = clock.now();
    await db.write([
      ...freeClaimedKeys(
        recipients.filter(({ key }) => orphans.has(key)),
        this.#instanceId,
        now,
      ),
      ...freeDeliveries(
        deliveries.filter((key) => orphans.has(key)),
        this.#instanceId,
        now,
      ),
    ]);
    log("sweep").warn("freed claims that no job held", { claims: orphans.size });
  }
}
