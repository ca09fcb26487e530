import { accountWide, me, project } from "../state/session.ts";
import { LocalTime } from "./time.tsx";

/** Says on every page that the project is suspended, because then nothing can be sent. */
export function Suspension() {
  const at = project.value?.suspendedAt ?? me.value?.project?.suspendedAt ?? null;
  if (at === null) return null;
  return (
    <p class="notice" role="status">
      This project is suspended since <LocalTime at={at} />. Its sends are refused.{" "}
      {accountWide.value ? <a href="/projects">Lift the suspension</a> : "The account's owner can lift it."}
    </p>
  );
}
