import { expect, test } from "bun:test";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { loadCertificate } from "../../src/smtp/listener/certificate.ts";
import { SELF_SIGNED_DAYS, selfSignedCertificate } from "../../src/smtp/listener/self-signed.ts";
import { newFolder } from "../support/folder.ts";

const NOW = Date.UTC(2026, 0, 15);
const clock = { now: () => NOW, elapsed: () => 0, after: () => () => {} };
const twoCertificates = () =>
  Promise.all([selfSignedCertificate("a.test", NOW), selfSignedCertificate("a.test", NOW)]);
const NONE = { keyFile: null, certFile: null };

test("a self-signed certificate names the host, is signed by its own key and is valid from before now", async () => {
  const { key, cert } = await loadCertificate({ clock }, NONE, "mx.postrider.test");
  const x509 = new X509Certificate(cert);
  expect(x509.subject).toBe("CN=mx.postrider.test");
  expect(x509.issuer).toBe(x509.subject);
  expect(x509.checkHost("mx.postrider.test")).toBe("mx.postrider.test");
  expect(x509.verify(x509.publicKey)).toBe(true);
  expect(x509.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(x509.ca).toBe(false);
  expect(Date.parse(x509.validFrom)).toBe(NOW - 86_400_000);
  expect(Date.parse(x509.validTo)).toBe(NOW + (SELF_SIGNED_DAYS - 1) * 86_400_000);
});

test("a host name of the greatest length is in the certificate whole", async () => {
  const long = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;
  const x509 = new X509Certificate((await selfSignedCertificate(long, NOW)).cert);
  expect(x509.checkHost(long)).toBe(long);
});

test("no two certificates share a key or a serial number", async () => {
  const [one, two] = await twoCertificates();
  expect(one.key).not.toBe(two.key);
  expect(new X509Certificate(one.cert).serialNumber).not.toBe(new X509Certificate(two.cert).serialNumber);
});

test("certificate files are read unchanged; a missing file, one that is not PEM and a foreign key are refused", async () => {
  const folder = newFolder("certificate");
  const [own, other] = await twoCertificates();
  const file = async (name: string, text: string) => {
    await Bun.write(join(folder, name), text);
    return join(folder, name);
  };
  const keyFile = await file("key.pem", own.key);
  const certFile = await file("cert.pem", own.cert);
  const load = (files: { keyFile: string; certFile: string }) => loadCertificate({ clock }, files, "a.test");
  expect(await load({ keyFile, certFile })).toEqual(own);
  await expect(load({ keyFile: await file("other.pem", other.key), certFile })).rejects.toThrow(
    "does not belong",
  );
  await expect(load({ keyFile: join(folder, "missing.pem"), certFile })).rejects.toThrow();
  const no = await file("no.pem", "no");
  await expect(load({ keyFile, certFile: no })).rejects.toThrow(`${no} does not contain a PEM certificate (`);
  await expect(load({ keyFile: no, certFile })).rejects.toThrow(
    `${no} does not contain an unencrypted PEM private key`,
  );
  const sealed = createPrivateKey(own.key).export({
    type: "pkcs8",
    format: "pem",
    cipher: "aes-128-cbc",
    passphrase: "p",
  });
  await expect(load({ keyFile: await file("sealed.pem", String(sealed)), certFile })).rejects.toThrow(
    "sealed.pem does not contain an unencrypted PEM private key",
  );
  const broken = await file(
    "chain.pem",
    `${own.cert}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
  );
  await expect(load({ keyFile, certFile: broken })).rejects.toThrow(
    `${broken} contains a chain that OpenSSL refuses`,
  );
});
