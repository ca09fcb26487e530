import type { Config } from "../config.ts";
import type { Api } from "./api-client.ts";
import type { Flag } from "./command.ts";
import { usage } from "./exit.ts";
import { readSecret } from "./input.ts";

/** The flags of commands that call a running service. */
export const API_FLAGS = {
  sender: { type: "string", value: "ID", help: "project id; needed with an account-wide key" },
  "key-file": {
    type: "string",
    value: "FILE",
    help: "file with the API key, or - for standard input (default: POSTRIDER_API_KEY)",
  },
  key: {
    type: "string",
    value: "SECRET",
    help: "API key; other users of the machine can see it, so prefer --key-file",
  },
  url: { type: "string", value: "URL", help: "address of the API (default: PUBLIC_URL)" },
} as const satisfies Readonly<Record<string, Flag>>;

type Given = Readonly<Record<keyof typeof API_FLAGS, string | undefined>>;

/** Returns the service and the key that the flags and settings name. @throws CommandError (usage) if one is missing */
export async function apiOf(
  flags: Given,
  { publicUrl, postriderApiKey }: Pick<Config, "publicUrl" | "postriderApiKey">,
  url = apiUrl(flags.url ?? publicUrl),
): Promise<Api> {
  return { url, key: await keyOf(flags, postriderApiKey), sender: flags.sender };
}

async function keyOf(flags: Pick<Given, "key" | "key-file">, ofEnvironment: string | null): Promise<string> {
  if (flags.key !== undefined && flags["key-file"] !== undefined) throw usage("either --key or --key-file");
  if (flags["key-file"] !== undefined) return readSecret(flags["key-file"]);
  const key = flags.key ?? ofEnvironment;
  if (key !== null && /^[\x21-\x7e]+$/.test(key)) return key;
  throw usage("an API key is needed: --key-file FILE, or POSTRIDER_API_KEY");
}

/** Returns the address of the API without a slash at its end. */
export function apiUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usage(`--url must begin with http:// or https://`);
  return text.replace(/\/+$/, "");
}
