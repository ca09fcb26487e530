/** Endpoints of a fan-out in a separate thread, so that their reading does not delay the measured work. */
declare const self: Worker;

const heard = new Set<string>();
let shortest = Number.POSITIVE_INFINITY;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const body = await request.arrayBuffer();
    shortest = Math.min(shortest, body.byteLength);
    heard.add(new URL(request.url).pathname);
    return new Response(null, { status: 200 });
  },
});
self.onmessage = () => self.postMessage({ heard: heard.size, shortest });
self.postMessage({ port: server.port });
