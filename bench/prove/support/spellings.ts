/** Name of an honest endpoint with a public address. */
export const PUBLIC_HOST = "hook.example";

/** Ways to write a URL that leads, or seems to lead, to a private address, by kind. */
export const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  "as usual": [
    ...["https://127.0.0.1/", "https://127.255.255.254/", "https://10.0.0.1/", "https://172.16.0.1/"],
    ...["https://192.168.1.1/", "https://169.254.169.254/latest/meta-data/", "https://100.64.0.1/"],
    ...["https://0.0.0.0/", "https://192.0.0.192/", "https://198.18.0.1/", "https://240.0.0.1/"],
  ],
  decimal: ["https://2130706433/", "https://2852039166/", "https://167772161/", "https://3232235777/"],
  octal: [
    ...["https://0177.0.0.1/", "https://017700000001/", "https://0177.0000.0000.0001/"],
    ...["https://0251.0376.0251.0376/", "https://127.000.000.001/", "https://00000177.0.0.1/"],
  ],
  hexadecimal: [
    ...["https://0x7f000001/", "https://0x7f.0.0.1/", "https://0x7f.0x0.0x0.0x1/", "https://0xa9fea9fe/"],
    ...["https://0XA9.0XFE.0XA9.0XFE/", "https://0x0000007f.1/"],
  ],
  "short and mixed": [
    ...["https://127.1/", "https://127.0.1/", "https://10.1/", "https://0/", "https://0x0/"],
    ...["https://169.16689662/", "https://0x7f.1/", "https://0177.1/", "https://192.168.257/"],
  ],
  "trailing dot": ["https://127.0.0.1./", "https://0x7f.1./", "https://2130706433./", "https://localhost./"],
  "IDN digits and signs": [
    ...["https://１２７.０.０.１/", "https://①②⑦.⓪.⓪.①/", "https://127。0。0。1/", "https://127．0．0．1/"],
    ...["https://𝟏𝟐𝟕.𝟎.𝟎.𝟏/", "https://127.0.0.\u00ad1/", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "https://ｌocalhost/"],
  ],
  "percent signs and white space": [
    ...[
      "https://%31%32%37.0.0.1/",
      "https://127%2e0%2e0%2e1/",
      "https://127.0\t.0.1/",
      "https://127.\n0.0.1/",
    ],
    ...["  https://127.0.0.1/  ", "https:/\\127.0.0.1/", "https:127.0.0.1", "https:\\\\127.0.0.1\\"],
  ],
  IPv6: [
    ...["https://[::1]/", "https://[0:0:0:0:0:0:0:1]/", "https://[::]/", "https://[fc00::1]/"],
    ...["https://[fd00:ec2::254]/", "https://[fec0::1]/", "https://[100::1]/", "https://[2001:db8::1]/"],
    ...["https://[fe80::1]/", "https://[ff02::1]/"],
  ],
  "IPv4-mapped": [
    ...["https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::FFFF:10.0.0.1]/"],
    ...["https://[0:0:0:0:0:ffff:a9fe:a9fe]/", "https://[::ffff:0:127.0.0.1]/"],
  ],
  "IPv4-compatible": ["https://[::127.0.0.1]/", "https://[::7f00:1]/", "https://[::a9fe:a9fe]/"],
  NAT64: [
    ...["https://[64:ff9b::127.0.0.1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::a00:1]/"],
  ],
  "6to4 and Teredo": [
    ...["https://[2002:7f00:1::]/", "https://[2002:a9fe:a9fe::1]/"],
    ...["https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "https://[2001::1]/"],
  ],
  "zone ids": ["https://[fe80::1%25lo]/", "https://[fe80::1%lo]/", "https://[::1%25lo]/"],
  "credentials and what looks like them": [
    ...["https://user:pass@127.0.0.1/", `https://${PUBLIC_HOST}@127.0.0.1/`, "https://:@127.0.0.1/"],
    ...[`https://${PUBLIC_HOST}%40127.0.0.1/`, `https://127.0.0.1\\@${PUBLIC_HOST}/`],
    ...[`https://127.0.0.1?@${PUBLIC_HOST}`, `https://127.0.0.1#@${PUBLIC_HOST}`],
  ],
  ports: [
    ...[
      "https://127.0.0.1:443/",
      "https://127.0.0.1:0443/",
      "https://127.0.0.1:80/",
      "https://127.0.0.1:22/",
    ],
    ...["https://127.0.0.1:6379/", "https://[::1]:8443/", "https://169.254.169.254:80/"],
  ],
  "other schemes": [
    ...["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "HTTP://2852039166/"],
    ...["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO", "//127.0.0.1/"],
    ...["ws://127.0.0.1/", "unix:/run/a.sock", "javascript:fetch('https://127.0.0.1')"],
  ],
  "names of this machine": ["https://localhost/", "https://LOCALHOST/", "https://a.b.localhost/"],
};

/** DNS records of names that lead inside. A name is short for its URL `https://NAME/`. */
export const INSIDE_NAMES: Readonly<
  Record<string, readonly { type: "A" | "AAAA" | "CNAME"; data: string }[]>
> = {
  "loopback.example": [{ type: "A", data: "127.0.0.1" }],
  "metadata.example": [{ type: "A", data: "169.254.169.254" }],
  "ten.example": [{ type: "A", data: "10.0.0.1" }],
  "any.example": [{ type: "A", data: "0.0.0.0" }],
  "shared.example": [{ type: "A", data: "100.64.0.1" }],
  "loopback6.example": [{ type: "AAAA", data: "::1" }],
  "mapped.example": [{ type: "AAAA", data: "::ffff:127.0.0.1" }],
  "nat64.example": [{ type: "AAAA", data: "64:ff9b::a9fe:a9fe" }],
  "6to4.example": [{ type: "AAAA", data: "2002:7f00:1::1" }],
  "local6.example": [{ type: "AAAA", data: "fd00:ec2::254" }],
  "alias.example": [{ type: "CNAME", data: "loopback.example" }],
  "alias-of-localhost.example": [{ type: "CNAME", data: "localhost" }],
  "127.0.0.1.example": [{ type: "A", data: "127.0.0.1" }],
};
