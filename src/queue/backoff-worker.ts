import { Worker } from "bullmq";

/** Wait before the next request for a job if Redis refused one or the connection was lost, milliseconds. */
export const RETRY_MS = 1_000;

/**
 * A worker that waits if Redis refused it a job. BullMQ waits only if the connection is lost. If Redis takes no
 * writes, BullMQ would ask again at once, thousands of times a second.
 */
export class BackoffWorker<Data> extends Worker<Data> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await this.delay(RETRY_MS);
      throw error;
    }
  }
}
