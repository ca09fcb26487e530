import { useSignal } from "@preact/signals";
import { patch, remove } from "../../api/client.ts";
import type { ApiKey } from "../../api/types.ts";
import { ConfirmName } from "../../controls/confirm-name.tsx";
import { Detail } from "../../components/detail.tsx";
import { TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can, me } from "../../state/session.ts";
import { InboxNames } from "./inboxes.tsx";
import { KeyStatus, projectText } from "./words.tsx";

interface DetailProps {
  apiKey: ApiKey;
  onClose: () => void;
  onChanged: () => void;
}

/** One API key: what it may do, and when it was used. */
export function KeyDetail({ apiKey, onClose, onChanged }: DetailProps) {
  const { id, name, keyPrefix, last4, scopes, allowRecipients, approval, revokedAt, inboxIds, senderId } =
    apiKey;
  return (
    <Detail
      name="Key"
      id={id}
      busy={false}
      onClose={onClose}
      actions={
        revokedAt !== null || !can("api_keys:write") ? null : (
          <Actions apiKey={apiKey} onChanged={onChanged} />
        )
      }
    >
      <div class="detail-head">
        <h2 dir="auto">{name}</h2>
        <p class="answer" role="status">
          <KeyStatus apiKey={apiKey} />
          <code>
            {keyPrefix}…{last4}
          </code>
        </p>
      </div>
      <dl class="facts key-facts">
        <Fact name="Project">{projectText(apiKey)}</Fact>
        <Fact name="May do">
          {scopes.length === 0
            ? "Everything"
            : scopes.map((scope) => (
                <span key={scope} class="tag">
                  {scope}
                </span>
              ))}
        </Fact>
        <Fact name="Recipients">{allowRecipients === null ? "All" : allowRecipients.join(", ")}</Fact>
        {inboxIds === null ? null : (
          <Fact name="Inboxes">
            <InboxNames project={senderId ?? ""} ids={inboxIds} />
          </Fact>
        )}
        <Fact name="Approval">
          {approval ? "Each send waits until another key approves it" : "Not needed"}
        </Fact>
        <Fact name="Last used">{timeOf(apiKey.lastUsedAt, "Never")}</Fact>
        <Fact name="Created">
          {timeOf(apiKey.createdAt, "")} <Maker maker={apiKey.createdBy} />
        </Fact>
        {revokedAt === null ? null : <Fact name="Revoked">{timeOf(revokedAt, "")}</Fact>}
      </dl>
    </Detail>
  );
}

/** The maker of a key, with a link to the page of that person or key. */
function Maker({ maker }: { maker: ApiKey["createdBy"] }) {
  if (maker === null) return null;
  const name = maker.name ?? (maker.type === "member" ? "a person" : "another key");
  const path = maker.type === "member" ? "people" : "keys";
  const mayOpen = maker.name !== null && (maker.type === "key" || can("members:write"));
  return (
    <span class="quiet">
      by {maker.type === "key" && maker.name !== null ? "the key " : ""}
      {mayOpen ? <a href={`/${path}/${maker.id}`}>{name}</a> : name}
    </span>
  );
}

function timeOf(at: string | null, none: string) {
  return at === null ? none : <LocalTime at={at} />;
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd dir="auto">{children}</dd>
    </div>
  );
}

function Actions({ apiKey, onChanged }: Pick<DetailProps, "apiKey" | "onChanged">) {
  const { id, name } = apiKey;
  const path = `/v1/api-keys/${encodeURIComponent(id)}`;
  const open = useSignal<"rename" | "revoke" | null>(null);
  const close = () => {
    open.value = null;
  };
  const changed = () => {
    close();
    onChanged();
  };
  return (
    <>
      <button type="button" class="button small" onClick={() => (open.value = "revoke")}>
        Revoke
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "rename")}>
        Rename
      </button>
      {open.value === "rename" ? (
        <Rename path={path} name={name} onChanged={changed} onClose={close} />
      ) : null}
      {open.value === "revoke" ? (
        <ConfirmName
          title={`Revoke ${name}?`}
          name={name}
          verb="Revoke key"
          onConfirm={async () => {
            await remove(path, {}, { account: true });
            changed();
          }}
          onClose={close}
        >
          <p>
            The next request with this key is refused, and that cannot be undone.
            {id === me.value?.key.id ? " You are signed in with this key, so this session ends too." : ""}
          </p>
        </ConfirmName>
      ) : null}
    </>
  );
}

interface RenameProps {
  path: string;
  name: string;
  onChanged: () => void;
  onClose: () => void;
}

function Rename({ path, name, onChanged, onClose }: RenameProps) {
  const next = useSignal(name);
  const save = async () => {
    await patch<ApiKey>(path, { name: next.value.trim() }, { account: true });
    onChanged();
  };
  return (
    <FormDialog
      title="Rename the key"
      verb="Rename key"
      keep="Keep the name"
      onSubmit={save}
      onClose={onClose}
    >
      <TextField label="Name" name="name" value={next} autoFocus />
    </FormDialog>
  );
}
