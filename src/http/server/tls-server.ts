import type { ListeningServer, ListenOn, TlsFiles } from "./listen.ts";

/** A server with TLS whose certificate can be replaced while it listens. */
export interface TlsServer {
  /** Rejects if the port cannot be bound. */
  start(port: number, tls: readonly TlsFiles[]): Promise<{ port: number }>;
  /** Uses these keys and chains for later connections. If they cannot be used, throws, and the old ones stay. */
  setCertificates(tls: readonly TlsFiles[]): void;
  /** The one that takes connections, and those that still finish requests. */
  servers(): ListeningServer[];
}

/**
 * Time that a server with an old certificate has for its requests, milliseconds. Long answers, such as streams of events,
 * end then, and their clients ask again.
 */
export const OLD_SERVER_GRACE_MS = 600_000;

/**
 * Creates a server with TLS. Bun reads a certificate only when a server begins to listen. So for each new one a second
 * server listens on the port before the first one stops. No connection is refused in between, and requests in progress are
 * finished. A handshake in progress when the first one stops may have to be repeated.
 */
export function createTlsServer(listen: (on: ListenOn) => ListeningServer): TlsServer {
  const old = new Set<ListeningServer>();
  let current: ListeningServer | null = null;
  return {
    async start(port, tls) {
      // A shared port could be shared with another process, too. So first make sure that this one is free.
      const probe = listen({ port, tls });
      await probe.stop(0);
      current = listen({ port: probe.port, tls, shared: true });
      return { port: current.port };
    },
    setCertificates(tls) {
      const last = current;
      if (last === null) return;
      current = listen({ port: last.port, tls, shared: true });
      old.add(last);
      void last.stop(OLD_SERVER_GRACE_MS).finally(() => old.delete(last));
    },
    servers: () => [...(current === null ? [] : [current]), ...old],
  };
}
