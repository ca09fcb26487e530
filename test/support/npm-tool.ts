import { createServer } from "node:net";
import { join } from "node:path";

/** A program of an npm package. */
export interface Tool {
  name: string;
  version: string;
  /** Path of the program within the package. */
  bin: string;
}

const ROOT = join(import.meta.dir, "../..");

/** Where the program lies: among the project's packages, or in the folder that POSTRIDER_TOOLS names. */
export function toolPath({ name, bin }: Tool): string {
  return join(process.env.POSTRIDER_TOOLS ?? join(ROOT, "node_modules"), name, bin);
}

/** Starts the program under this very Bun. */
export function spawnTool(tool: Tool, args: readonly string[], env: Record<string, string>) {
  return Bun.spawn([process.execPath, toolPath(tool), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: { ...process.env, ...env, NO_COLOR: "1" },
  });
}

/** A port that nothing listens on just now, for programs that cannot pick one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
