/**
 * Options of `slow-clients.ts`: ports, a key and an inbox of the service, and the number of connections of each kind.
 */
export interface SlowOptions {
  httpPort: number;
  smtpPort: number;
  key: string;
  inbox: string;
  http: number;
  smtp: number;
  idle: number;
}

/** A line that it prints. */
export interface SlowState {
  standing: Record<string, number>;
  reopened: number;
}
