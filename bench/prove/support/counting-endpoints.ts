/** Webhook endpoints that count the messages they hear of. Every second endpoint is slow. */

export interface CountingEndpoints {
  url(nth: number): string;
  /** Endpoints and the messages that they heard of, each pair once. */
  told: ReadonlySet<string>;
  stop(): void;
}

/** Read without parsing: a payload has half a MiB, and there are hundreds of them. */
const MESSAGE_ID = /"messageId":"(msg_[0-9a-z]+)"/;

/** Starts endpoints on one port of loopback. Those with an odd number take so long to answer. */
export function startCountingEndpoints(slowMs: number): CountingEndpoints {
  const told = new Set<string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname;
      const id = MESSAGE_ID.exec(await request.text())?.[1];
      if (Number(name.slice(1)) % 2 === 1) await Bun.sleep(slowMs);
      told.add(`${name} ${id}`);
      return new Response(null, { status: 200 });
    },
  });
  return {
    url: (nth) => `http://127.0.0.1:${server.port}/${nth}`,
    told,
    stop: () => void server.stop(true),
  };
}
