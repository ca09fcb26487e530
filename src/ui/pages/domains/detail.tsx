import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get, post, remove } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Domain, Receiving, CheckedDomain } from "../../api/types.ts";
import { Advice } from "../../controls/advice.tsx";
import { ConfirmName } from "../../controls/confirm-name.tsx";
import { CopyButton } from "../../controls/copy.tsx";
import { Detail } from "../../components/detail.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { LocalTime } from "../../components/time.tsx";
import { navigate, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { RoutesPart } from "../routes/choice.tsx";
import { ReceivingPart, WildcardPart } from "./receiving.tsx";
import { isChecked, Records, zoneText } from "./records.tsx";
import { ReportsPart } from "./reports.tsx";
import { DomainStatus } from "./status.tsx";

interface DetailProps {
  id: string;
  onClose: () => void;
  /** Called when the domain's row in the list has changed. */
  onChanged: () => void;
}

/** One domain: whether it works, the records to publish, and whether it receives. */
export function DomainDetail({ id, onClose, onChanged }: DetailProps) {
  const path = `/v1/domains/${encodeURIComponent(id)}`;
  const domain = useResource(`domain ${id}`, () => get<Domain>(path));
  const found = domain.value.value;
  return (
    <Detail
      name="Domain"
      id={id}
      busy={domain.loading.value}
      onClose={onClose}
      actions={
        found === null || !can("domains:write") ? null : (
          <Actions
            domain={found}
            path={path}
            onRotated={domain.set}
            onDeleted={() => {
              onChanged();
              onClose();
            }}
          />
        )
      }
    >
      <Problem error={domain.error.value} onRetry={domain.reload} />
      {found === null ? null : <Body domain={found} resource={domain} path={path} onChanged={onChanged} />}
    </Detail>
  );
}

interface ActionsProps {
  domain: Domain;
  path: string;
  onRotated: (domain: Domain) => void;
  onDeleted: () => void;
}

function Actions({ domain, path, onRotated, onDeleted }: ActionsProps) {
  const deleting = useSignal(false);
  const close = () => navigate(urlWith({ rotate: null }), { replace: true });
  const rotate = async () => {
    onRotated(await post<Domain>(`${path}/rotate-dkim`));
    close();
  };
  return (
    <>
      <button type="button" class="button small" onClick={() => (deleting.value = true)}>
        Delete
      </button>
      <button type="button" class="button small" onClick={() => navigate(urlWith({ rotate: "1" }))}>
        Rotate DKIM
      </button>
      {query.value.has("rotate") ? (
        <Confirm title="Rotate the DKIM key?" verb="Rotate key" onConfirm={rotate} onClose={close}>
          <p>
            You get another DKIM record to publish. Mail is signed with the new key as soon as its record is
            found. Keep the old record for 7 days after that.
          </p>
        </Confirm>
      ) : null}
      {deleting.value ? (
        <ConfirmName
          title={`Delete ${domain.domain}?`}
          name={domain.domain}
          verb="Delete domain"
          onConfirm={async () => {
            await remove(path);
            onDeleted();
          }}
          onClose={() => (deleting.value = false)}
        >
          <p>The domain and its DKIM keys are deleted. Messages from it can no longer be sent.</p>
        </ConfirmName>
      ) : null}
    </>
  );
}

interface BodyProps {
  domain: Domain;
  resource: Resource<Domain>;
  path: string;
  onChanged: () => void;
}

function Body({ domain, resource, path, onChanged }: BodyProps) {
  const sending = domain.records.filter(({ purpose }) => purpose !== "inbound");
  const verifying = useTask();
  const verify = () =>
    verifying.run(async () => {
      resource.set(await post<Domain>(`${path}/verify`));
      onChanged();
    });
  // Only a check says what is wrong with a record, so a reloaded page makes one.
  const wantsCheck =
    domain.checkedAt !== null &&
    domain.verifiedBy !== "capture" &&
    domain.records.some((record) => !record.verified && !isChecked(record));
  useEffect(() => {
    if (wantsCheck && can("domains:write")) void verify();
  }, [domain.id, wantsCheck]);
  const receiving = useResource(`receiving ${domain.id}`, () => get<Receiving>(`${path}/receiving`));
  // A check has looked at the records that it returns.
  const checked = domain.records.filter(({ purpose }) => purpose === "inbound");
  const inbound = checked.length > 0 ? checked : (receiving.value.value?.records ?? []);
  const all = [...sending, ...(domain.receiving ? inbound : []), ...domain.recommended];
  return (
    <>
      <div class="detail-head">
        <h2>{domain.domain}</h2>
        <p class="answer" role="status">
          <DomainStatus status={domain.status} />
          <span>{answerOf(domain)}</span>
        </p>
        <p class="quiet">
          {domain.checkedAt === null ? (
            "Not checked yet."
          ) : (
            <>
              Checked at <LocalTime at={domain.checkedAt} />.
            </>
          )}{" "}
          Postrider also checks by itself.
        </p>
      </div>
      <section class="detail-part" aria-label="DNS records">
        <div class="part-head">
          <h3>DNS records</h3>
          <span class="part-actions">
            <CopyButton text={zoneText(all)} what="zone file">
              Copy zone file
            </CopyButton>
            {can("domains:write") ? (
              <Verify domain={domain} busy={verifying.busy.value} onVerify={() => void verify()} />
            ) : null}
          </span>
        </div>
        <Problem error={verifying.error.value} />
        <CheckFindings domain={domain} />
        <Records records={sending} needed={domain.verifiedBy !== "capture"} />
      </section>
      <RecommendedPart domain={domain} />
      <RoutesPart
        owner={{ name: domain.domain, routeIds: domain.routeIds }}
        path={path}
        scope="domains:write"
        ifNone="its mail takes the routes of the project."
        onChanged={resource.set}
      />
      <ReportsPart domain={domain} resource={resource} path={path} />
      <ReceivingPart
        domain={domain}
        receiving={receiving}
        records={inbound}
        path={path}
        onChanged={(enabled) => {
          resource.set({ ...domain, receiving: enabled });
          onChanged();
        }}
      />
      <WildcardPart domain={domain} path={path} onChanged={resource.set} />
    </>
  );
}

interface VerifyProps {
  domain: Domain;
  busy: boolean;
  onVerify: () => void;
}

function Verify({ domain: { status }, busy, onVerify }: VerifyProps) {
  const pending = status === "pending";
  return (
    <button
      type="button"
      class={pending ? "button small primary" : "button small"}
      disabled={busy}
      onClick={onVerify}
    >
      {busy ? "Checking the DNS" : pending ? "Verify domain" : "Check again"}
    </button>
  );
}

/** Returns the state of a domain in one sentence, with what to do next. */
function answerOf({ status, verifiedBy, checkedAt, records }: Domain): string {
  if (verifiedBy === "capture") return "It works for tests, because this service keeps all mail to itself.";
  if (status === "verified")
    return records.every(({ verified }) => verified)
      ? "You can send from it."
      : "You can send from it, but some records need your attention.";
  return checkedAt === null
    ? "Publish these records at your DNS provider, then verify the domain."
    : "Some records are not right yet. Publish them at your DNS provider, then verify again.";
}

/** The records that make mail of a domain its own, each with its state. Sending does not wait for them. */
function RecommendedPart({ domain: { recommended, verifiedBy } }: { domain: Domain }) {
  return (
    <section class="detail-part" aria-label="Recommended records">
      <div class="part-head">
        <h3>Recommended</h3>
      </div>
      <p class="quiet">
        Your mail is sent without these records. With them, its return path and links are at your domain.
      </p>
      <Records records={recommended} needed={verifiedBy !== "capture"} isOptional />
    </section>
  );
}

/** Findings of a check about the whole domain: its SPF evaluation, and what some receivers refuse. */
function CheckFindings({ domain }: { domain: Domain | CheckedDomain }) {
  if (!("spf" in domain) || domain.verifiedBy === "capture") return null;
  const { spf, warnings } = domain;
  return (
    <>
      <p class="quiet">
        Receivers find SPF <code>{spf.result}</code> for our addresses, with {spf.lookups} of at most 10
        lookups.
      </p>
      {warnings.map((warning) => (
        <p class="record-trouble" key={warning}>
          <Advice text={warning} />
        </p>
      ))}
    </>
  );
}
