/** The depth of an outbox. `oldestSeconds` is how long the oldest due row has been due. */
export interface QueueSample {
  depth: Readonly<Record<string, number>>;
  oldestSeconds: Readonly<Record<string, number>>;
}

/** Lanes and messages of one provider. `provider` is "other" for hosts of no known one. */
export interface LaneSample {
  provider: string;
  /** Number of its lanes by state. */
  states: Readonly<Record<string, number>>;
  /** Attempts of the day by outcome. */
  day: Readonly<Record<string, number>>;
}

/** Values that are read only when Prometheus reads the metrics. */
export interface Readings {
  /** Null if the database did not answer. */
  queues: QueueSample | null;
  lanes: readonly LaneSample[];
  /** For each check, true if it holds. */
  ready: Readonly<Record<string, boolean>>;
  /** Open SMTP connections. */
  connections: { in: number; out: number };
  /** Clients of this process that follow events. */
  live: { stream: number; wait: number };
  process: ProcessSample;
}

/** The process as the system sees it. Null if the system does not tell. */
export interface ProcessSample {
  cpuUserSeconds: number;
  cpuSystemSeconds: number;
  residentBytes: number;
  heapBytes: number;
  /** Seconds since the Unix epoch. */
  startedAt: number;
  openFds: number | null;
  maxFds: number | null;
}
