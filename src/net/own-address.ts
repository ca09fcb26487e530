/** Returns whether this machine has an address, so that a connection may leave from it. */
export function isOwnAddress(ip: string): boolean {
  try {
    Bun.listen({ hostname: ip, port: 0, socket: { data: () => undefined } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
