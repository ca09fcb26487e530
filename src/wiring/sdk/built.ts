/** The path at which the built service reads the client's npm package. Null in a clone: `scripts/build.ts` puts another module here. */
export const builtSdk: string | null = null;
