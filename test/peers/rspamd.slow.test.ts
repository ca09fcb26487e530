import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { newFolder, removeFolder } from "../support/folder.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { startRspamd } from "../support/peers/spam-filters.ts";
import { freePort } from "../support/redis.ts";
import { receivingInboxes, startService } from "../support/service.ts";

/** Milliseconds: eight seconds on an idle machine. */
setDefaultTimeout(120_000);

/** The string that every filter takes for spam. */
const GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";

describe.skipIf(Bun.which("rspamd") === null)("rspamd as the spam filter", () => {
  test("gives its verdict on each message of an inbox, in its order of weight", async () => {
    const folder = newFolder("rspamd");
    const port = freePort();
    const service = await startService({ SPAM_CHECK_URL: `http://127.0.0.1:${port}` });
    const rspamd = await startRspamd(folder, port, service.dns);
    try {
      await receivingInboxes(service, "in.test", ["box@in.test"]);
      const plain = await deliveredRecord(service, { to: "box@in.test", headers: ["Subject: Hello"] });
      expect(plain.spam.required).toBe(15);
      expect(plain.spam.symbols.map(({ name }: { name: string }) => name)).toContain("MISSING_DATE");
      const spam = await deliveredRecord(service, { to: "box@in.test", body: GTUBE });
      expect(spam.spam).toMatchObject({ action: "reject" });
      expect(spam.spam.symbols[0].name).toBe("GTUBE");
    } finally {
      await rspamd.stop();
      await service.stop();
      removeFolder(folder);
    }
  });
});
