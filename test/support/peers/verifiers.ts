import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder, removeFolder } from "../folder.ts";

/** Sources of the public key for a verifier. */
export interface PublishedKey {
  /** Port of a DNS server on loopback that has the record. */
  dnsPort: number;
  name: string;
  record: string;
}

/** A DKIM verifier of another project. */
export interface Verifier {
  name: string;
  /** Why it cannot run here, or null if it can. */
  missing: string | null;
  /** Why it cannot verify Ed25519 signatures (RFC 8463), or null if it can. */
  lacksEd25519: string | null;
  /** Verdict on each message, in order: "pass", or the reason for failure. */
  verify(messages: readonly Buffer[], key: PublishedKey): Promise<string[]>;
}

const OPENDKIM = "/usr/sbin/opendkim";

/** dkimpy: messages are prefixed with their lengths, keys come from dnspython. */
const DKIMPY = `
import struct, sys
import dkim, dns.resolver
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers = ["127.0.0.1"]
resolver.port = int(sys.argv[1])
dns.resolver.default_resolver = resolver
while True:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4: break
    message = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    try:
        print("pass" if dkim.DKIM(message).verify() else "fail")
    except Exception as error:
        print("error: " + repr(error).replace("\\n", " "))
`;

/** Perl's Mail::DKIM: messages are prefixed with their lengths, keys come from Net::DNS. */
const MAIL_DKIM = `
use strict; use warnings;
use Mail::DKIM::Verifier; use Mail::DKIM::DNS; use Net::DNS::Resolver;
Mail::DKIM::DNS::resolver(Net::DNS::Resolver->new(nameservers => ["127.0.0.1"], port => $ARGV[0], recurse => 1));
binmode STDIN;
while (read(STDIN, my $head, 4) == 4) {
  read(STDIN, my $message, unpack("N", $head));
  my $verifier = Mail::DKIM::Verifier->new();
  $verifier->PRINT($message);
  $verifier->CLOSE();
  my $detail = $verifier->result_detail() =~ s/\\n/ /gr;
  print $verifier->result() eq "pass" ? "pass\\n" : "$detail\\n";
}
`;

/** Debian's own interpreters. If another Python or Perl comes first in PATH, it lacks Debian's packages. */
export const VERIFIERS: readonly Verifier[] = [
  verifier("dkimpy", "/usr/lib/python3/dist-packages/dkim/__init__.py", ["/usr/bin/python3", "-c", DKIMPY], {
    file: "/usr/lib/python3/dist-packages/nacl/__init__.py",
    name: "PyNaCl",
  }),
  verifier("Mail::DKIM", "/usr/share/perl5/Mail/DKIM.pm", ["/usr/bin/perl", "-e", MAIL_DKIM], {
    file: "/usr/share/perl5/Mail/DKIM/Algorithm/ed25519_sha256.pm",
    name: "a Mail::DKIM of 2024 or later",
  }),
  {
    name: "OpenDKIM",
    missing: existsSync(OPENDKIM) ? null : "OpenDKIM is not installed",
    lacksEd25519: null,
    verify: verifyByOpenDkim,
  },
];

/** OpenDKIM's test mode checks files and reads keys from a file. */
async function verifyByOpenDkim(
  messages: readonly Buffer[],
  { name, record }: PublishedKey,
): Promise<string[]> {
  const folder = newFolder("opendkim");
  const files = messages.map((message, at) => {
    const file = join(folder, String(at));
    writeFileSync(file, message);
    return file;
  });
  writeFileSync(join(folder, "keys"), `${name} ${record}\n`);
  writeFileSync(join(folder, "conf"), `Mode v\nSyslog no\nTestPublicKeys ${join(folder, "keys")}\n`);
  const child = Bun.spawn([OPENDKIM, "-x", join(folder, "conf"), "-t", files.join(",")], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  removeFolder(folder);
  const lines = said.join("").split("\n");
  return files.map((file) => {
    const line = lines.find((candidate) => candidate.includes(` ${file}: `)) ?? "no verdict";
    return / verification .* succeeded$/.test(line) ? "pass" : line;
  });
}

/** @param ed25519 what it needs for Ed25519: a file, and a name for people */
function verifier(
  name: string,
  file: string,
  command: readonly string[],
  ed25519: { file: string; name: string },
): Verifier {
  return {
    name,
    missing: existsSync(file) ? null : `${name} is not installed`,
    lacksEd25519: existsSync(ed25519.file) ? null : `${ed25519.name} is not installed`,
    async verify(messages, { dnsPort }) {
      const child = Bun.spawn([...command, String(dnsPort)], {
        stdin: Buffer.concat(messages.flatMap((message) => [lengthOf(message), message])),
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      const verdicts = out.trim().split("\n");
      if (verdicts.length !== messages.length || (await child.exited) !== 0)
        throw new Error(`${name} read ${verdicts.length} of ${messages.length} messages: ${err}`);
      return verdicts;
    },
  };
}

function lengthOf(message: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  return length;
}
