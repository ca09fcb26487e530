import { useSignal } from "@preact/signals";
import { get, patch } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Project } from "../../api/types.ts";
import { now } from "../../browser/clock.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Detail } from "../../components/detail.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { Fact } from "../../components/fact.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can, chooseProject, projectId } from "../../state/session.ts";
import { counted } from "../../words/amounts.ts";
import { EditProject } from "./edit.tsx";
import { ProjectDot } from "./project.tsx";
import { RoutesPart } from "../routes/choice.tsx";
import { QuotaUse } from "./quota.tsx";

interface DetailProps {
  id: string;
  onClose: () => void;
  /** Called when the project has changed. */
  onChanged: () => void;
}

/** One project: whether it may send, its limits and what it uses of them. */
export function ProjectDetail({ id, onClose, onChanged }: DetailProps) {
  const project = useResource(`project ${id}`, () => get<Project>(pathOf(id), {}, { account: true }));
  const found = project.value.value;
  const changed = (next: Project) => {
    project.set(next);
    onChanged();
  };
  return (
    <Detail
      name="Project"
      id={id}
      busy={project.loading.value}
      onClose={onClose}
      actions={found === null ? null : <Actions project={found} onChanged={changed} />}
    >
      <Problem error={project.error.value} onRetry={project.reload} />
      {found === null ? null : (
        <>
          <Head project={found} />
          <RoutesPart
            owner={found}
            path={pathOf(id)}
            account
            scope="senders:write"
            ifNone="its mail takes the default route."
            onChanged={changed}
          />
          {can("emails:send") ? <QuotaUse key={`${found.plan} ${found.dailyQuota}`} id={id} /> : null}
        </>
      )}
    </Detail>
  );
}

function pathOf(id: string): string {
  return `/v1/senders/${encodeURIComponent(id)}`;
}

function Head({ project }: { project: Project }) {
  const { name, externalId, plan, trustTier, dailyQuota, tracking, postalAddress } = project;
  const { suspendedAt, createdAt } = project;
  return (
    <div class="detail-head">
      <h2 dir="auto">{name}</h2>
      <p class="answer">
        <ProjectDot project={project} />
        <span>
          {suspendedAt === null ? (
            "It may send."
          ) : (
            <>
              Since <LocalTime at={suspendedAt} />. Its sends are refused, and its queued mail waits.
            </>
          )}
        </span>
      </p>
      <dl class="facts">
        <Fact
          name="External id"
          value={
            <>
              <code>{externalId}</code> <CopyButton text={externalId} what="external id" />
            </>
          }
        />
        <Fact name="Plan" value={plan} />
        <Fact name="Trust tier" value={trustTier} />
        <Fact
          name="Daily quota"
          value={dailyQuota === null ? "that of the trust tier" : counted(dailyQuota, "recipient")}
        />
        <Fact name="Tracking" value={trackingText(tracking)} />
        {postalAddress === null ? null : <Fact name="Postal address" value={postalAddress} />}
        <Fact name="Created" value={<LocalTime at={createdAt} />} />
      </dl>
    </div>
  );
}

function trackingText({ opens, clicks }: Project["tracking"]): string {
  const opened = opens === "auto" ? "opens in html with enough text" : opens ? "opens" : "";
  const tracked = [opened, clicks ? "clicks" : ""].filter((each) => each !== "");
  return tracked.join(" and ") || "off";
}

function Actions({ project, onChanged }: { project: Project; onChanged: (project: Project) => void }) {
  const open = useSignal<"edit" | "suspend" | null>(null);
  const task = useTask();
  const close = () => {
    open.value = null;
  };
  const suspend = async (suspendedAt: string | null) =>
    onChanged(await patch<Project>(pathOf(project.id), { suspendedAt }, { account: true }));
  return (
    <>
      <Problem error={open.value === null ? task.error.value : null} />
      {project.id === projectId.value ? (
        <span class="quiet">All pages show this project.</span>
      ) : (
        <button type="button" class="button small primary" onClick={() => chooseProject(project.id)}>
          Switch to it
        </button>
      )}
      {can("senders:write") ? (
        <>
          <button type="button" class="button small" onClick={() => (open.value = "edit")}>
            Edit
          </button>
          {project.suspendedAt === null ? (
            <button type="button" class="button small" onClick={() => (open.value = "suspend")}>
              Suspend
            </button>
          ) : (
            <button
              type="button"
              class="button small"
              disabled={task.busy.value}
              onClick={() => void task.run(() => suspend(null))}
            >
              Lift the suspension
            </button>
          )}
        </>
      ) : null}
      {open.value === "edit" ? <EditProject project={project} onSaved={onChanged} onClose={close} /> : null}
      {open.value === "suspend" ? (
        <Confirm
          title={`Suspend ${project.name}?`}
          verb="Suspend project"
          task={task}
          onConfirm={() => suspend(new Date(now()).toISOString()).then(close)}
          onClose={close}
        >
          <p>
            Its sends are refused, and its queued mail waits, until you lift the suspension. It still receives
            mail.
          </p>
        </Confirm>
      ) : null}
    </>
  );
}
