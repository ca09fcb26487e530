import { openAddressGuard } from "../../src/net/address-guard.ts";

/** The guard of an installation without public addresses. */
export const mayReach = openAddressGuard({ own: () => [], denied: [] });
