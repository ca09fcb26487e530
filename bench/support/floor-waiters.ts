/** A bare HTTP server that answers no request that waits: the floor of a waiting client's memory. */
const [port] = process.argv.slice(2);
Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  idleTimeout: 75,
  fetch: ({ url }) =>
    url.includes("wait=") ? new Promise<Response>(() => undefined) : Response.json({ data: [] }),
});
process.on("SIGTERM", () => process.exit(0));
console.log("ready");
