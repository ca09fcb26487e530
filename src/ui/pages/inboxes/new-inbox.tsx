import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import type { Domain, Inbox } from "../../api/types.ts";
import { TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { suggestedInbox, useDomains } from "../../state/installation.ts";
import { can, me } from "../../state/session.ts";
import { AcceptField } from "./accept.tsx";

/** Makes an inbox. If its domain is not registered, offers to register it in the same step. */
export function NewInbox({ onClose, onCreated }: MakerProps<Inbox>) {
  const address = useSignal("");
  const displayName = useSignal("");
  const accept = useSignal<Inbox["accept"]>("anyone");
  const task = useTask();
  const domains = useDomains();
  const known = domains.value.value;
  useEffect(() => {
    if (address.peek() !== "" || known === null) return;
    const host = (known.find(({ receiving }) => receiving) ?? known[0])?.domain;
    if (host !== undefined) address.value = `support@${host}`;
    else if (me.peek()?.service.delivery === "capture") address.value = suggestedInbox();
  }, [known, address]);
  const domain = address.value.split("@")[1]?.trim().toLowerCase() ?? "";
  const refused = task.error.value?.issues.some(({ param }) => param === "address") === true;
  const isKnown = known?.some((one) => one.domain === domain) === true;
  const offers = refused && !isKnown && domain.includes(".") && can("domains:write");
  const create = async () => {
    const name = displayName.value.trim();
    const body = {
      address: address.value.trim(),
      accept: accept.value,
      ...(name === "" ? {} : { displayName: name }),
    };
    onCreated(await post<Inbox>("/v1/inboxes", body));
  };
  const addDomain = () =>
    task.run(async () => {
      await post<Domain>("/v1/domains", { domain });
      domains.reload();
      await create();
    });
  return (
    <FormDialog title="Create an inbox" verb="Create inbox" task={task} onSubmit={create} onClose={onClose}>
      <TextField
        label="Address"
        name="address"
        value={address}
        autoFocus
        placeholder="support@mail.example.com"
        hint="Mail to support+anything arrives here too. * before the @ stands for every other address of the domain."
      />
      {offers ? (
        <button type="button" class="button" disabled={task.busy.value} onClick={() => void addDomain()}>
          Add the domain {domain} and create the inbox
        </button>
      ) : null}
      <TextField
        label="Display name"
        name="displayName"
        value={displayName}
        hint="Shown to the people who get replies. Optional."
      />
      <AcceptField value={accept} />
    </FormDialog>
  );
}
