/** The messages that the clients of `stall` bring. */
export interface LargeMailOptions {
  port: number;
  from: string;
  to: string;
  /** The header fields, each with its line end. */
  header: string;
  /** The text that the body repeats. */
  line: string;
  /** Bytes of the body. */
  octets: number;
  /** Clients, each of which brings its next message when the last one is answered. */
  atOnce: number;
  /** Milliseconds after which a client brings no further message; each brings at least one. */
  ms: number;
}

/** The answer to one message; `code` is null if there was none. */
export interface LargeMailAnswer {
  code: number | null;
  ms: number;
}
