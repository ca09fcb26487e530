import { describe, expect, test } from "bun:test";
import { endpointOf } from "../../../src/net/http-exchange.ts";

describe("a URL connects to", () => {
  test.each([
    ["http://mail.example/", "mail.example", 80, null],
    ["http://mail.example:8080/", "mail.example", 8080, null],
    ["https://mail.example/", "mail.example", 443, "mail.example"],
    ["https://mail.example.:8443/", "mail.example", 8443, "mail.example"],
    ["http://192.0.2.1/", "192.0.2.1", 80, null],
    // RFC 6066 §3: an address is not sent as a server name.
    ["https://192.0.2.1/", "192.0.2.1", 443, ""],
    ["https://[2001:db8::1]:8443/", "2001:db8::1", 8443, ""],
  ])("%s", (url, host, port, tlsName) => {
    expect(endpointOf(new URL(url))).toEqual({ host, port, tlsName });
  });
});
