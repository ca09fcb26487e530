import { afterAll, beforeAll, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { ok } from "../../src/http/routing/answer.ts";
import { LARGE_BODY_OCTETS } from "../../src/http/body/budget.ts";
import { projectRoute, type Route } from "../../src/http/routing/route.ts";
import { type TestApi, testApi } from "../support/api.ts";

/** True if other requests had an event loop tick between the handler and the JSON of its answer. */
let othersHadTurn = false;

function echo(): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/echo",
      operationId: "echo",
      summary: "Shows what it is given",
      scope: "emails:send",
      body: Type.Object({ text: Type.String() }),
      bodyLimit: "message",
      answers: { 200: Type.Object({ text: Type.String() }) },
      handle({ body }) {
        let turns = 0;
        setImmediate(() => turns++);
        const toJSON = () => {
          othersHadTurn = turns > 0;
          return body;
        };
        return ok({ toJSON });
      },
    }),
  ];
}

let api: TestApi;
beforeAll(async () => {
  api = await testApi({ maxBodyBytes: 2 * LARGE_BODY_OCTETS, routes: echo });
});
afterAll(() => api.close());

test("the answer to a large body is serialized in a separate turn after the handler", async () => {
  const text = "x".repeat(LARGE_BODY_OCTETS);
  const { status, json } = await api.call("POST", "/v1/echo", { body: { text } });
  expect([status, json.text === text, othersHadTurn]).toEqual([200, true, true]);
});
