import type { DomainLookups, LookupResult } from "../records/lookups.ts";

/** Returns lookups that ask each question once, so that a check and its diagnosis see the same answers. */
export function rememberedLookups(lookups: DomainLookups): DomainLookups {
  return {
    cname: once(lookups.cname),
    txt: once(lookups.txt),
    mx: once(lookups.mx),
    ns: once(lookups.ns),
    a: once(lookups.a),
    aaaa: once(lookups.aaaa),
  };
}

function once<Record>(look: (name: string) => Promise<LookupResult<Record>>) {
  const asked = new Map<string, Promise<LookupResult<Record>>>();
  return (name: string): Promise<LookupResult<Record>> => {
    const known = asked.get(name) ?? look(name);
    asked.set(name, known);
    return known;
  };
}
