import { version } from "../package.json";

/** Set by the build (scripts/build.ts): the commit it was made from, and "" if that is not known. */
declare const BUILT_FROM: string | undefined;

/** Version of the program, `1.2.3`. docs/releasing.md says what it promises. */
export const VERSION: string = version;

/** First 12 digits of the commit that the program was built from; null in a clone. */
export const COMMIT: string | null = typeof BUILT_FROM === "string" && BUILT_FROM !== "" ? BUILT_FROM : null;

/** Version and commit, such as `1.2.3 (0123456789ab)`. */
export const VERSION_TEXT: string = COMMIT === null ? VERSION : `${VERSION} (${COMMIT})`;
