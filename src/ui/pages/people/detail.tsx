import { useSignal } from "@preact/signals";
import { get, patch, remove } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Member, MemberSession, Page } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { Fact } from "../../components/fact.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { ConfirmName } from "../../controls/confirm-name.tsx";
import { SelectField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { navigate } from "../../state/router.ts";
import { projects } from "../../state/session.ts";
import { browserText } from "../../words/browser.ts";
import { ROLE_OPTIONS, stateOf } from "./words.ts";

interface DetailProps {
  member: Member;
  onClose: () => void;
  onChanged: () => void;
}

const WHOLE_ACCOUNT = { account: true } as const;

/** One person: role, projects and sessions. */
export function PersonDetail({ member, onClose, onChanged }: DetailProps) {
  const { id, email, role, senderIds, lastSeenAt, createdAt } = member;
  const nameOf = (senderId: string) => projects.value.find((one) => one.id === senderId)?.name ?? senderId;
  return (
    <Detail
      name="Person"
      id={id}
      busy={false}
      onClose={onClose}
      actions={<Actions member={member} onChanged={onChanged} />}
    >
      <div class="detail-head">
        <h2>{email}</h2>
        <p class="answer" role="status">
          <Dot {...stateOf(member)} />
        </p>
        <dl class="facts">
          <Fact name="Role" value={ROLE_OPTIONS.find(({ value }) => value === role)?.text ?? role} />
          <Fact name="Projects" value={senderIds.length === 0 ? "All" : senderIds.map(nameOf).join(", ")} />
          <Fact name="Last seen" value={lastSeenAt === null ? "Never" : <LocalTime at={lastSeenAt} />} />
          <Fact name="Invited" value={<LocalTime at={createdAt} />} />
        </dl>
      </div>
      <Sessions path={pathOf(member)} />
    </Detail>
  );
}

function pathOf({ id }: Member): string {
  return `/v1/members/${encodeURIComponent(id)}`;
}

/** The browsers in which the person has signed in. */
function Sessions({ path }: { path: string }) {
  const at = `${path}/sessions`;
  const sessions = useResource(at, () => get<Page<MemberSession>>(at, {}, WHOLE_ACCOUNT));
  const task = useTask();
  const rows = sessions.value.value?.data ?? [];
  const end = (id: string) =>
    task.run(async () => {
      await remove(`${at}/${encodeURIComponent(id)}`, {}, WHOLE_ACCOUNT);
      sessions.reload();
    });
  return (
    <section class="detail-part" aria-label="Sessions">
      <h3>Sessions</h3>
      <Problem error={task.error.value ?? sessions.error.value} />
      {rows.length === 0 ? <p class="quiet">Not signed in.</p> : null}
      <ul>
        {rows.map(({ id, ip, userAgent, lastUsedAt }) => (
          <li key={id} class="session">
            <span title={userAgent ?? ""}>{browserText(userAgent ?? "A program")}</span>
            <span class="quiet">{ip}</span>
            <span class="quiet">
              <LocalTime at={lastUsedAt} />
            </span>
            <button type="button" class="button small" onClick={() => end(id)}>
              End session
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Actions({ member, onChanged }: Omit<DetailProps, "onClose">) {
  const open = useSignal<"role" | "remove" | null>(null);
  const task = useTask();
  const close = () => {
    open.value = null;
  };
  const isDisabled = member.status === "disabled";
  const toggle = () =>
    task.run(async () => {
      await patch<Member>(pathOf(member), { status: isDisabled ? "active" : "disabled" }, WHOLE_ACCOUNT);
      onChanged();
    });
  return (
    <>
      <Problem error={task.error.value} />
      <button type="button" class="button small" onClick={() => (open.value = "remove")}>
        Remove
      </button>
      <button type="button" class="button small" onClick={toggle} disabled={task.busy.value}>
        {isDisabled ? "Enable" : "Disable"}
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "role")}>
        Change role
      </button>
      {open.value === "role" ? <RoleChange member={member} onChanged={onChanged} onClose={close} /> : null}
      {open.value === "remove" ? (
        <ConfirmName
          title={`Remove ${member.email}?`}
          name={member.email}
          verb="Remove person"
          onConfirm={async () => {
            await remove(pathOf(member), {}, WHOLE_ACCOUNT);
            onChanged();
            navigate("/people");
          }}
          onClose={close}
        >
          <p>All sessions of this person end. API keys that the person has made stay.</p>
          <p>A person who needs no invitation to sign in can come back. Disable such a person instead.</p>
        </ConfirmName>
      ) : null}
    </>
  );
}

function RoleChange({ member, onChanged, onClose }: DetailProps) {
  const role = useSignal<string>(member.role);
  const save = async () => {
    await patch<Member>(pathOf(member), { role: role.value }, WHOLE_ACCOUNT);
    onChanged();
    onClose();
  };
  return (
    <FormDialog
      title="Change the role"
      verb="Change role"
      keep="Keep the role"
      onSubmit={save}
      onClose={onClose}
    >
      <SelectField label="Role" name="role" value={role} options={ROLE_OPTIONS} />
    </FormDialog>
  );
}
