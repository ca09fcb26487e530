/** A bare Elysia route that stores each body as one row: the floor of an accept. */
import { Elysia } from "elysia";
import { groupCommitStore, singleCommitStore } from "./floor-database.ts";

const [kind, file, port] = process.argv.slice(2);
const store = await (kind === "group" ? groupCommitStore : singleCommitStore)(file ?? "");
const app = new Elysia().post("/v1/emails", async ({ body, set }) => {
  const id = await store(JSON.stringify(body));
  set.status = 202;
  return { id, status: "queued" };
});
app.listen({ hostname: "127.0.0.1", port: Number(port) });
process.on("SIGTERM", () => process.exit(0));
console.log("ready");
