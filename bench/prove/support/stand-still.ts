/** Fault of `--control` where a wait is measured: the service stands still for a second, over and over. */
const STILL_MS = 1000;
const BETWEEN_MS = 1000;

/** Begins; call what it gives to end it. */
export function standStill(pid: number): () => void {
  let still = false;
  const toggle = (): void => {
    still = !still;
    process.kill(pid, still ? "SIGSTOP" : "SIGCONT");
    timer = setTimeout(toggle, still ? STILL_MS : BETWEEN_MS);
  };
  let timer = setTimeout(toggle, BETWEEN_MS);
  return () => {
    clearTimeout(timer);
    process.kill(pid, "SIGCONT");
  };
}
