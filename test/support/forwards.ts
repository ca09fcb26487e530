import { until } from "./poll.ts";
import type { TestMx } from "./mx.ts";
import type { ApiAnswer, TestService } from "./service.ts";

/** The service, and the relay that gets its mail. */
interface Outside {
  service(): TestService;
  relay(): TestMx;
}

type Call = (method: string, path: string, body?: unknown) => Promise<ApiAnswer>;

/** Asks for a forward address. Returns its record, and the link and the text of the mail to its owner. */
export async function askedAddress({ relay }: Outside, call: Call, email: string) {
  const before = relay().messages.items.length;
  const { status, body: address } = await call("POST", "/v1/forward-addresses", { email });
  if (status !== 201) throw new Error(JSON.stringify(address));
  const mail = () =>
    relay()
      .messages.items.slice(before)
      .find(({ rcptTo }) => rcptTo.includes(email));
  await until(async () => mail() !== undefined);
  const text = mail()?.data.toString().replaceAll("=\r\n", "") ?? "";
  const link = /\/f\/[\w.~-]+/.exec(text)?.[0];
  if (link === undefined) throw new Error(`no link in ${text}`);
  return { address, link, text };
}

/** Returns a forward address that its owner has confirmed. */
export async function confirmedForward(outside: Outside, call: Call, email: string): Promise<{ id: string }> {
  const { address, link } = await askedAddress(outside, call, email);
  const { status } = await outside.service().call("POST", link, undefined, { key: "none" });
  if (status !== 200) throw new Error(`the link was answered ${status}`);
  return address;
}
