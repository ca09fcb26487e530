/** A package of the program, as its package.json describes it. */
export interface Packaged {
  name: string;
  version: string;
  license?: unknown;
}

export interface Program extends Packaged {
  description?: string;
}

interface Component {
  type: "library" | "application";
  "bom-ref": string;
  group?: string;
  name: string;
  version: string;
  purl: string;
  licenses?: object[];
  hashes?: { alg: "SHA-512"; content: string }[];
}

/** A package URL: the `@` of a scope is percent-encoded (purl-spec, type npm). */
function purlOf({ name, version }: Packaged): string {
  return `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
}

/** SPDX identifiers, and expressions of them (SPDX 2.3, annex D). Any other string is a free-form name. */
const SPDX = /^\(?[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) \(?[A-Za-z0-9.+-]+\)?)*\)?$/;

function licensesOf({ license }: Packaged): object[] {
  if (typeof license !== "string" || license === "") return [];
  return [SPDX.test(license) ? { expression: license } : { license: { name: license } }];
}

/** Returns the SHA-512 of each package of a bun.lock, in hex, by `name@version`. */
export function lockedHashes(lock: string): Map<string, string> {
  const entries = lock.matchAll(/\["((?:@[^"@]+)?[^"@]+@[^"]+)",.*"sha512-([A-Za-z0-9+/=]+)"\],?$/gm);
  return new Map(
    [...entries].map(([, id = "", hash = ""]) => [id, Buffer.from(hash, "base64").toString("hex")]),
  );
}

function componentOf(one: Packaged, type: Component["type"], hash: string | undefined): Component {
  const [scope, bare] = one.name.startsWith("@") ? one.name.split("/") : [undefined, one.name];
  const licenses = licensesOf(one);
  return {
    type,
    "bom-ref": purlOf(one),
    ...(scope === undefined ? {} : { group: scope }),
    name: bare ?? one.name,
    version: one.version,
    purl: purlOf(one),
    ...(licenses.length === 0 ? {} : { licenses }),
    ...(hash === undefined ? {} : { hashes: [{ alg: "SHA-512", content: hash }] }),
  };
}

/**
 * Returns the software bill of materials of the program (CycloneDX 1.6, JSON): each package that it contains, once. It has
 * no time and no serial number, so that the same source gives the same text.
 */
export function sbomOf(
  program: Program,
  packages: readonly Packaged[],
  hashes: ReadonlyMap<string, string>,
): string {
  const distinct = new Map(packages.map((one) => [purlOf(one), one]));
  const components = [...distinct.values()]
    .map((one) => componentOf(one, "library", hashes.get(`${one.name}@${one.version}`)))
    .sort((a, b) => (a.purl < b.purl ? -1 : 1));
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: componentOf(program, "application", undefined) },
    components,
    dependencies: [{ ref: purlOf(program), dependsOn: components.map(({ purl }) => purl) }],
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}
