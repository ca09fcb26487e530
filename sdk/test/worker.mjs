// Runs the suite in a Worker: the request's body is the scene, the answer has the results.
import * as sdk from "../dist/esm/index.js";
import { run } from "./suite.mjs";

export default {
  async fetch(request) {
    return Response.json(await run(sdk, await request.json()));
  },
};
