import { expect, test } from "bun:test";
import { Client, signal, startServer, TAKEN } from "./server-harness.ts";

const FAREWELL = "421 4.3.2 The service is shutting down, try again later\r\n";

test("on a stop idle sessions get 421, a pending message is answered first, and new connections are refused", async () => {
  const [inHand, answer] = [signal(), signal<typeof TAKEN>()];
  await using server = await startServer({
    message: () => {
      inHand.give();
      return answer.wait;
    },
  });
  const idle = await Client.connect(server.port);
  const busy = await Client.connect(server.port);
  await busy.startMessage();
  busy.send("x\r\n.\r\n");
  await inHand.wait;

  let stopped = false;
  const stopping = server.listener.stop(20_000).then(() => {
    stopped = true;
  });
  expect(await idle.rest()).toBe(FAREWELL);
  idle.destroy();
  await expect(refused(server.port)).resolves.toBe(true);
  expect(stopped).toBe(false);
  answer.give(TAKEN);
  expect(await busy.rest()).toBe(`250 2.0.0 Taken\r\n${FAREWELL}`);
  busy.destroy();
  await stopping;
});

/** Resolves to whether a connection is refused, or only accepted to be closed with 421. */
async function refused(port: number): Promise<boolean> {
  const outcome = Promise.withResolvers<boolean>();
  const socket = await import("node:net").then((net) => net.connect(port, "127.0.0.1"));
  socket.once("error", () => outcome.resolve(true));
  socket.once("data", (text: Buffer) => outcome.resolve(text.toString().startsWith("421")));
  return await outcome.promise;
}

test("on a stop a message still being sent may be finished", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.startMessage();
  const stopping = server.listener.stop(20_000);
  client.send("x\r\n.\r\n");
  expect(await client.rest()).toBe(`250 2.0.0 Taken\r\n${FAREWELL}`);
  client.destroy();
  await stopping;
  expect(server.taken.length).toBe(1);
});

test("when the grace period is over all connections are closed, and no late 250 is sent", async () => {
  const [inHand, answer] = [signal(), signal<typeof TAKEN>()];
  await using server = await startServer({
    message: () => {
      inHand.give();
      return answer.wait;
    },
  });
  const [sending, waiting] = [await Client.connect(server.port), await Client.connect(server.port)];
  await sending.startMessage();
  sending.send("half");
  await waiting.startMessage();
  waiting.send("x\r\n.\r\n");
  await inHand.wait;
  const stopping = server.listener.stop(20_000);
  server.clock.advance(20_000);
  await stopping;
  answer.give(TAKEN);
  expect(await sending.rest()).toBe(FAREWELL);
  expect(await waiting.rest()).toBe(FAREWELL);
});

test("a stop waits for a pending message even if its sender has gone", async () => {
  const [inHand, answer] = [signal(), signal<typeof TAKEN>()];
  await using server = await startServer({
    message: () => {
      inHand.give();
      return answer.wait;
    },
  });
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send("x\r\n.\r\n");
  await inHand.wait;
  client.reset();
  await client.quiet();
  let stopped = false;
  const stopping = server.listener.stop(20_000).then(() => {
    stopped = true;
  });
  await client.quiet();
  expect(stopped).toBe(false);
  answer.give(TAKEN);
  await stopping;
});

test("on a stop a session between STARTTLS and its handshake is closed at once", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.say("STARTTLS");
  const stopping = server.listener.stop(20_000);
  expect(await client.rest()).toBe("");
  client.destroy();
  await stopping;
});

test("a listener without connections stops at once", async () => {
  await using server = await startServer();
  await server.listener.stop(20_000);
});

test("a port in use is reported at the start", async () => {
  await using server = await startServer();
  await expect(startServer({}, { port: server.port })).rejects.toThrow();
});
