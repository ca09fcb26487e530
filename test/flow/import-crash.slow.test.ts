import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../support/poll.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";

setDefaultTimeout(90_000);

const ROWS = 30_000;

let service: ServiceProcess;
beforeEach(async () => {
  service = serviceProcess({ DELIVERY: "capture" });
  await service.start();
});
afterEach(() => service.remove());

async function call(method: string, path: string, body?: string) {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Bearer ${service.key}`,
      "x-service-product": "default",
      ...(body === undefined ? {} : { "content-type": "text/csv" }),
    },
    ...(body === undefined ? {} : { body }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API shows.
  const shown: any = await response.json();
  return { status: response.status, body: shown };
}

test("a killed process in the middle of an import loses and doubles no row after its restart", async () => {
  const file = `email,first_name\n${Array.from({ length: ROWS }, (_, at) => `c${at}@x.test,N${at}\n`).join("")}`;
  const begun = await call("POST", "/v1/contacts/import", file);
  expect(begun.status).toBe(202);
  const read = async () => (await call("GET", `/v1/imports/${begun.body.id}`)).body;
  for (let kill = 0; kill < 3; kill++) {
    const { created } = await read();
    await until(async () => (await read()).created > created);
    await service.kill();
    await service.start();
  }
  await until(async () => (await read()).status === "done");
  expect(await read()).toMatchObject({ rows: ROWS, created: ROWS, updated: 0, unchanged: 0, failed: 0 });
  expect((await call("GET", "/v1/quota")).body).toMatchObject({ resources: { contacts: { used: ROWS } } });
  const results = await fetch(`${service.url}/v1/imports/${begun.body.id}/rows`, {
    headers: { authorization: `Bearer ${service.key}`, "x-service-product": "default", accept: "text/csv" },
  });
  const lines = (await results.text()).trimEnd().split("\r\n").slice(1);
  expect(lines.map((line) => Number(line.split(",")[0]))).toEqual(
    Array.from({ length: ROWS }, (_, at) => at + 2),
  );
});
