import type { CheckedRecord, DnsRecord } from "../../api/types.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Dot } from "../../components/status.tsx";
import type { Tone } from "../../words/status.ts";

const PURPOSES: Readonly<Record<DnsRecord["purpose"], { name: string; means: string }>> = {
  dkim: { name: "DKIM", means: "Lets receivers check that a message is yours and unchanged." },
  spf: { name: "SPF", means: "Says that this service may send for the domain." },
  dmarc: { name: "DMARC", means: "Tells receivers what to do with mail that fails both checks." },
  return_path: {
    name: "Return path",
    means: "Brings bounces back under your own domain, so that SPF aligns.",
  },
  links: { name: "Links", means: "Lets links in your mail lead to your own domain. Needs both records." },
  inbound: { name: "MX", means: "Brings mail for the domain to this service." },
};

const STATES: Readonly<Record<CheckedRecord["status"], { word: string; tone: Tone }>> = {
  verified: { word: "Found", tone: "good" },
  missing: { word: "Missing", tone: "bad" },
  wrong: { word: "Wrong", tone: "bad" },
  spreading: { word: "Spreading", tone: "moving" },
  unknown: { word: "No answer", tone: "late" },
};

/** Returns whether a check has just looked at the record, so that it says what is wrong. */
export function isChecked(record: DnsRecord | CheckedRecord): record is CheckedRecord {
  return "status" in record;
}

interface RecordsProps {
  records: readonly (DnsRecord | CheckedRecord)[];
  /** False if the service is in capture mode and asks no DNS about the domain. */
  needed: boolean;
  /** True if sending does not wait for them, so that a missing one is no trouble. */
  isOptional?: boolean;
}

/** DNS records to publish, each with its state and how to fix it. */
export function Records({ records, needed, isOptional = false }: RecordsProps) {
  return (
    <ul class="records">
      {records.map((record) => (
        <RecordCard key={`${record.type} ${record.name}`} {...{ record, needed, isOptional }} />
      ))}
    </ul>
  );
}

/** Returns the state of a record in a word. Without a check it is what the last check by the service has found. */
function stateOf({ record, needed, isOptional }: RecordCardProps): { word: string; tone: Tone } {
  if (!needed) return { word: "Not needed", tone: "quiet" };
  if (isOptional && isChecked(record) && record.status === "missing")
    return { word: "Not published", tone: "quiet" };
  if (isChecked(record)) return STATES[record.status];
  return record.verified ? STATES.verified : { word: "Not found yet", tone: "quiet" };
}

interface RecordCardProps {
  record: DnsRecord | CheckedRecord;
  needed: boolean;
  isOptional: boolean;
}

function RecordCard(card: RecordCardProps) {
  const { record } = card;
  const { type, name, value, priority, purpose } = record;
  const { name: title, means } = PURPOSES[purpose];
  return (
    <li class="record">
      <div class="record-head">
        <h4>{title}</h4>
        <span class="quiet">{means}</span>
        <Dot {...stateOf(card)} />
      </div>
      <dl class="record-values">
        <Line name="Type" value={type} />
        <Line name="Name" value={name} copy />
        <Line name="Value" value={value} copy />
        {priority === undefined ? null : <Line name="Priority" value={String(priority)} />}
      </dl>
      {isChecked(record) && record.problem !== null ? <Trouble record={record} /> : null}
    </li>
  );
}

function Line({ name, value, copy = false }: { name: string; value: string; copy?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <code>{value}</code>
        {copy ? <CopyButton text={value} what={name.toLowerCase()} /> : null}
      </dd>
    </div>
  );
}

function Trouble({ record: { problem, found, fix, value } }: { record: CheckedRecord }) {
  const publish = fix === value ? null : fix;
  return (
    <div class="record-trouble">
      <p>{problem}</p>
      {found.length === 0 && publish === null ? null : (
        <dl class="record-values">
          {found.length === 0 ? null : <Line name="In the DNS" value={found.join("\n")} />}
          {publish === null ? null : <Line name="Publish" value={publish} copy />}
        </dl>
      )}
    </div>
  );
}

/** Longest string in a TXT record of a zone file, characters (RFC 1035 section 3.3). */
const MAX_STRING_CHARS = 255;

/** Returns the records as lines of a zone file. */
export function zoneText(records: readonly DnsRecord[]): string {
  return records
    .map(({ type, name, value, priority }) => `${name}. IN ${type} ${zoneValue(type, value, priority)}`)
    .join("\n");
}

function zoneValue(type: DnsRecord["type"], value: string, priority: number | undefined): string {
  if (type !== "TXT") return `${priority === undefined ? "" : `${priority} `}${value}.`;
  const strings = value.match(new RegExp(`.{1,${MAX_STRING_CHARS}}`, "g")) ?? [""];
  return strings.map((text) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`).join(" ");
}
