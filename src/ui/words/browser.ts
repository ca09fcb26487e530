/** Marks of browsers in their User-Agent. Later ones are also in that of earlier ones. */
const BROWSERS: readonly [mark: string, name: string][] = [
  ["Edg/", "Edge"],
  ["OPR/", "Opera"],
  ["Firefox/", "Firefox"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
];
const SYSTEMS: readonly [mark: string, name: string][] = [
  ["Android", "Android"],
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["Linux", "Linux"],
];

/** Returns what a User-Agent says to people, such as `Firefox on Windows`, or itself if it names no known browser. */
export function browserText(userAgent: string): string {
  const named = (marks: typeof BROWSERS) => marks.find(([mark]) => userAgent.includes(mark))?.[1];
  const [browser, system] = [named(BROWSERS), named(SYSTEMS)];
  if (browser === undefined) return userAgent;
  return system === undefined ? browser : `${browser} on ${system}`;
}
