import { expect, test } from "bun:test";
import { hostIn, pathIn, servesAtDomainHosts } from "../../../../src/http/routing/domain-hosts.ts";

const servesAt = servesAtDomainHosts({
  serviceDomain: "mail.example.com",
  publicUrl: "https://links.example.com",
});

test.each<[string, string, boolean]>([
  ["links.news.test", "/c/token.url", true],
  ["links.news.test", "/u/token/", true],
  ["links.news.test", "/o/token", true],
  ["links.news.test", "/o/", false],
  ["links.news.test", "/o/a/b", false],
  ["links.news.test", "/v1/emails", false],
  ["links.news.test", "/.well-known/mta-sts.txt", false],
  ["LINKS.news.test.:443", "/", false],
  ["mta-sts.news.test", "/.well-known/mta-sts.txt", true],
  ["mta-sts.news.test", "/.well-known/mta-sts.txt/", false],
  ["mta-sts.news.test", "/c/token.url", false],
  // PUBLIC_URL, the names of the service, and hosts that only begin alike.
  ["links.example.com", "/v1/emails", true],
  ["mta-sts.mail.example.com", "/v1/emails", true],
  ["linkshop.test", "/v1/emails", true],
  ["links", "/v1/emails", true],
  ["127.0.0.1:3000", "/v1/emails", true],
  ["", "/v1/emails", true],
])("at the host %s the path %s is answered: %p", (host, path, answered) => {
  expect(servesAt(host, path)).toBe(answered);
});

test("a host is compared without port, final dot and case", () => {
  expect(["A.test:80", "a.test.", "a.test.:", "[::1]:80"].map(hostIn)).toEqual([
    "a.test",
    "a.test",
    "a.test",
    "[::1]",
  ]);
});

test("a path is read as it was sent", () => {
  const urls = [
    "http://a.test/o/../v1?x=/o/y",
    "http://a.test",
    "http://a.test/%2e%2e/c#d",
    "http://a.test//v1",
  ];
  expect(urls.map(pathIn)).toEqual(["/o/../v1", "/", "/%2e%2e/c", "//v1"]);
});
