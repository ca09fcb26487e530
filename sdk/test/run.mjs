// Runs the suite on Node, Bun and Deno: `run.mjs <scene as JSON>`. Prints the results as JSON.
import process from "node:process";
import * as sdk from "../dist/esm/index.js";
import { run } from "./suite.mjs";

process.stdout.write(JSON.stringify(await run(sdk, JSON.parse(process.argv[2]))));
