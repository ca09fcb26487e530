import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { type Api, callApi, type Schemas } from "./support/api-client.ts";
import { itemsOf, showItems } from "./support/api-list.ts";
import { type Context, defineCommand } from "./support/command.ts";
import { EX_NO, EX_OK, refused } from "./support/exit.ts";
import { LIMIT_FLAG, limitOf } from "./support/listing.ts";
import { field } from "./support/output.ts";

const COLUMNS = [
  field("id"),
  field("domain"),
  field("status"),
  field("verifiedBy", "verified by"),
  field("receiving"),
  field("createdAt", "created"),
];

/** Registers a domain. */
export const domainsAdd = defineCommand({
  name: "domains add",
  args: ["DOMAIN"],
  flags: API_FLAGS,
  about: `Registers a domain, and prints the records to publish at its DNS host. In capture mode, a domain under .test,
.example or .localhost is verified at once.`,
  example: "postrider domains add shop.test",
  async run({ flags, args: [domain] }, context) {
    const api = await apiFor(flags, context);
    const made = await callApi<Schemas["Domain"]>(context.clock, api, "POST", "/v1/domains", { domain });
    const advice =
      made.status === "verified"
        ? []
        : ["publish these records:", ...recordLines(made), `then: postrider domains verify ${made.domain}`];
    context.out.record({ ...made }, [`${made.id} ${made.domain} ${made.status}`, ...advice].join("\n"));
    return EX_OK;
  },
});

/** Checks a domain's records. */
export const domainsVerify = defineCommand({
  name: "domains verify",
  args: ["DOMAIN"],
  flags: API_FLAGS,
  about: `Checks the DNS records of a domain now, and says for each what is wrong and which value to publish. DOMAIN is a
name or an id. Exits 0 if the domain is verified, else 1.`,
  example: `postrider domains add verify.shop.test
postrider domains verify verify.shop.test`,
  async run({ flags, args: [wanted = ""] }, context) {
    const api = await apiFor(flags, context);
    const id = await idOf(context, api, wanted);
    const path = `/v1/domains/${encodeURIComponent(id)}/verify`;
    const checked = await callApi<Schemas["CheckedDomain"]>(context.clock, api, "POST", path);
    context.out.record(
      { ...checked },
      [`${checked.domain} ${checked.status}`, ...checked.records.flatMap(checkedLines)].join("\n"),
    );
    return checked.status === "verified" ? EX_OK : EX_NO;
  },
});

/** Lists domains. */
export const domainsList = defineCommand({
  name: "domains list",
  flags: { ...API_FLAGS, limit: LIMIT_FLAG },
  about: "Lists the domains of a project, newest first.",
  example: `postrider domains add list.shop.test
postrider domains list`,
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    const api = await apiFor(flags, context);
    await showItems(context.out, itemsOf(context.clock, api, "/v1/domains"), limit, COLUMNS);
    return EX_OK;
  },
});

/** Returns the id of a domain that is named by its id or name. */
async function idOf({ clock }: Context, api: Api, wanted: string): Promise<string> {
  if (wanted.startsWith("dom_")) return wanted;
  const name = wanted.toLowerCase().replace(/\.$/, "");
  for await (const { id, domain } of itemsOf(clock, api, "/v1/domains"))
    if (domain === name) return String(id);
  throw refused(`the project has no domain ${wanted}: postrider domains add ${wanted}`);
}

function recordLines({ records }: Schemas["Domain"]): string[] {
  return records.map(({ type, name, value }) => `  ${name} ${type} ${type === "TXT" ? `"${value}"` : value}`);
}

function checkedLines(record: Schemas["CheckedDnsRecord"]): string[] {
  const { purpose, status, problem, fix, found } = record;
  return [
    `  ${purpose} ${status}`,
    ...(problem === null ? [] : [`    ${problem}`]),
    ...(problem === null ? [] : found.map((value) => `    now:     ${value}`)),
    ...(fix === null ? [] : [`    publish: ${record.name} ${record.type} ${fix}`]),
  ];
}
