import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { usePages } from "../../api/pages.ts";
import type { Member } from "../../api/types.ts";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { Dot } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { SelectField, TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { useKey } from "../../state/keyboard.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { PersonDetail } from "./detail.tsx";
import { ChangeOwner } from "./owner.tsx";
import { ROLE_OPTIONS, stateOf } from "./words.ts";

/** The people who can sign in, and next to them the one that the path names. */
export function PeoplePage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<Member>("/v1/members", {}, ({ id }) => id);
  const close = () => navigate("/people");
  useKey("Escape", () => selected !== null && close());
  const found = pages.rows.value.find(({ id }) => id === selected);
  return (
    <Page
      title="People"
      layout="panes"
      actions={
        <>
          {can("senders:write") ? (
            <a class="button" href={urlWith({ owner: "1" })}>
              Change owner
            </a>
          ) : null}
          <CreateLink scope="members:write" text="Invite person" plus />
        </>
      }
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="People"
          pages={pages}
          columns="columns-messages columns-people"
          heads={["State", "Address", "Role", "Seen"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/people/${id}`}
          cells={(member) => <Cells member={member} />}
          empty={<EmptyState>Nobody has been invited. People sign in with a link by mail.</EmptyState>}
        />
        {found !== undefined ? (
          <PersonDetail key={found.id} member={found} onClose={close} onChanged={pages.refresh} />
        ) : selected !== null && pages.done.value ? (
          <EmptyState>There is no person with this id.</EmptyState>
        ) : null}
      </div>
      {opensForm("senders:write", "owner") ? (
        <ChangeOwner onClose={() => navigate(urlWith({ owner: null }), { replace: true })} />
      ) : null}
      {opensForm("members:write") ? (
        <Invite
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onCreated={({ id }) => {
            pages.refresh();
            navigate(`/people/${id}`, { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

function Cells({ member }: { member: Member }) {
  const { email, role, lastSeenAt } = member;
  return (
    <>
      <Dot {...stateOf(member)} />
      <span class="cut strong">{email}</span>
      <span class="cut quiet">{role}</span>
      {lastSeenAt === null ? <span class="age">never</span> : <RelativeTime at={lastSeenAt} />}
    </>
  );
}

/** Invites a person. */
function Invite({ onClose, onCreated }: MakerProps<Member>) {
  const email = useSignal("");
  const role = useSignal<string>("viewer");
  const invite = async () => {
    const body = { email: email.value.trim(), role: role.value };
    onCreated(await post<Member>("/v1/members", body, { account: true }));
  };
  return (
    <FormDialog title="Invite a person" verb="Send invitation" onSubmit={invite} onClose={onClose}>
      <TextField
        label="Email address"
        name="email"
        type="email"
        value={email}
        autoFocus
        hint="A link to sign in is sent there. It works once, within 15 minutes."
      />
      <SelectField label="Role" name="role" value={role} options={ROLE_OPTIONS} />
    </FormDialog>
  );
}
