import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";

let service: ServiceProcess;
beforeAll(async () => {
  service = serviceProcess({ TZ: "America/New_York" });
  await service.start();
});
afterAll(() => service.remove());

const FORMAT = "%Y-%m-%d %H:%M %z";

test.each([
  ["2026-07-01", "2026-07-01 00:00 +0000"],
  ["2026-07-01T10:00:00", "2026-07-01 10:00 +0000"],
  ["2026-07-01 10:00", "2026-07-01 10:00 +0000"],
  ["July 1, 2026", "2026-07-01 00:00 +0000"],
  // New York has no such time.
  ["2026-03-08T02:30:00", "2026-03-08 02:30 +0000"],
  ["2026-07-01T23:00:00-04:00", "2026-07-02 03:00 +0000"],
])("a template shows %p in UTC where the machine's zone is another", async (day, shown) => {
  const response = await fetch(`${service.url}/v1/templates/preview`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${service.key}`,
      "content-type": "application/json",
      "x-service-product": "default",
    },
    body: JSON.stringify({ text: `{{ day | date: "${FORMAT}" }}`, data: { day } }),
  });
  expect(await response.json()).toMatchObject({ text: shown });
});
