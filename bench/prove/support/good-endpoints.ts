/** Well-behaved webhook endpoints that note how long after its event each push arrives. */

export interface GoodEndpoints {
  url(nth: number): string;
  /** Milliseconds from event to arrival, of all endpoints, since `forget`. */
  latencies(): readonly number[];
  forget(): void;
  /** Messages that each endpoint has got events of. */
  told: readonly ReadonlySet<string>[];
  stop(): void;
}

interface Pushed {
  data: { messageId: string; occurredAt: string };
}

/** Starts this many endpoints on one port of loopback. Each answers 200 at once. */
export function startGoodEndpoints(count: number): GoodEndpoints {
  const told = Array.from({ length: count }, () => new Set<string>());
  let latencies: number[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const now = Date.now();
      // The part of the service's answer that the measure needs.
      const { data } = (await request.json()) as Pushed;
      latencies.push(now - Date.parse(data.occurredAt));
      told[Number(new URL(request.url).pathname.slice(1))]?.add(data.messageId);
      return new Response(null, { status: 200 });
    },
  });
  return {
    url: (nth) => `http://127.0.0.1:${server.port}/${nth}`,
    latencies: () => latencies,
    forget: () => {
      latencies = [];
    },
    told,
    stop: () => void server.stop(true),
  };
}
