/** Host and port as people read them and as a URL holds them: an IPv6 address in brackets (RFC 3986 §3.2.2). */
export function hostPort(host: string, port: unknown): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]:${port}` : `${host}:${port}`;
}
