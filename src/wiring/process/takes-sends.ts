import type { Config } from "../../config.ts";

/** The settings that say how programs can send by a process. */
export type TakingSettings = Pick<Config, "roles" | "submissionPort" | "submissionsPort">;

/** Returns true if programs can send over SMTP by this process. */
export function takesSubmissions({ roles, submissionPort, submissionsPort }: TakingSettings): boolean {
  return roles.has("smtp") && (submissionPort !== null || submissionsPort !== null);
}

/** Returns true if programs can send by this process, over HTTP or SMTP. */
export function takesSends(config: TakingSettings): boolean {
  return config.roles.has("api") || takesSubmissions(config);
}
