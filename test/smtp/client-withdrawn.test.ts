import { describe, expect, test } from "bun:test";
import { clientHarness, destination, MAIL } from "./client-harness.ts";

const { peer, pool, send } = clientHarness();

describe.each([["PIPELINING"], ["8BITMIME"]])("a withdrawn message, with %s", (extension) => {
  const options = { extensions: [extension] };
  const next = (rcptTo: string) => ({ ...MAIL, rcptTo });

  test("is not started, and its connection carries the next one", async () => {
    const mx = peer(options);
    const one = pool();
    const results = await Promise.all([
      one.deliver(destination(mx), { ...next("a@in.test"), stillWanted: () => false }),
      one.deliver(destination(mx), next("b@in.test")),
    ]);
    expect(results.map(({ result }) => result.kind)).toEqual(["withdrawn", "reply"]);
    expect(mx.messages.items.map(({ rcptTo }) => rcptTo)).toEqual([["b@in.test"]]);
    expect(mx.connections.items).toHaveLength(1);
    expect(mx.commands.items.filter((line) => line.startsWith("MAIL"))).toHaveLength(1);
  });

  test("is not given to a peer that waits for its content, and the next one uses another connection", async () => {
    const mx = peer(options);
    const one = pool();
    const answers = [true, false];
    const results = await Promise.all([
      one.deliver(destination(mx), next("a@in.test")),
      one.deliver(destination(mx), {
        ...next("b@in.test"),
        stillWanted: async () => answers.shift() ?? false,
      }),
      one.deliver(destination(mx), next("c@in.test")),
    ]);
    expect(results.map(({ result }) => result.kind)).toEqual(["reply", "withdrawn", "reply"]);
    expect(mx.messages.items.map(({ rcptTo }) => rcptTo)).toEqual([["a@in.test"], ["c@in.test"]]);
    expect(mx.connections.items).toHaveLength(2);
    expect(answers).toEqual([]);
  });
});

test("a message that one host has put off is withdrawn from the next host too", async () => {
  const first = peer({ answers: { RCPT: "450 4.2.0 later" } });
  const second = peer({ ip: "127.0.0.2", port: first.port });
  const hosts = [first, second].map((mx, at) => ({ name: `mx${at}.test`, addresses: [mx.ip] }));
  const stillWanted = () => second.connections.items.length === 0;
  const { result } = await send(first, { to: { hosts }, mail: { stillWanted } });
  expect(result).toEqual({ kind: "withdrawn" });
  expect(second.commands.items.filter((line) => line.startsWith("MAIL"))).toEqual([]);
});
