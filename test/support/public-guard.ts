import { openAddressGuard } from "../../src/net/address-guard.ts";

/** The guard of an installation with no addresses of its own. */
export const mayReach = openAddressGuard({ own: () => [], denied: [] });
