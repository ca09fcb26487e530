import type { CommitMeter } from "../store/engine/client.ts";

/** Tells of this process's commits. */
export interface CommitBell {
  /** The meter that the database calls. */
  meter: CommitMeter;
  /** Called after each commit. */
  onCommit: () => void;
}

/** Makes a meter that also rings after each commit. */
export function commitBell(meter: CommitMeter): CommitBell {
  const bell: CommitBell = {
    meter: {
      committed(seconds, writers) {
        meter.committed(seconds, writers);
        bell.onCommit();
      },
      failed: () => meter.failed(),
    },
    onCommit: () => undefined,
  };
  return bell;
}
