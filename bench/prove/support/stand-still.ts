/** Fault of `--control` for runs that measure a wait: the service pauses for a second, again and again. */
const STILL_MS = 1000;
const BETWEEN_MS = 1000;

/** Begins the pauses. Returns a function that ends them. */
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
