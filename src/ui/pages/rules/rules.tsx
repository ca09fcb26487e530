import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { patch, remove } from "../../api/client.ts";
import type { Rule } from "../../api/types.ts";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { Page } from "../../components/page.tsx";
import { DeleteButton } from "../../components/records/delete.tsx";
import { Icon } from "../../controls/icon.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Switch } from "../../controls/switch.tsx";
import { type Task, useTask } from "../../controls/task.ts";
import { codeContext } from "../../state/installation.ts";
import { navigate, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { curlText } from "../../words/code.ts";
import { ruleText } from "../../words/rules.ts";
import { namesOf, readRules, useNamed, useRules } from "./data.ts";
import { RuleForm } from "./form.tsx";
import { ForwardAddresses } from "./forward.tsx";
import { movedPositions } from "./order.ts";
import { TryRules } from "./try.tsx";

const SCOPE = "inboxes:write";

/**
 * The rules of the project in order. Without it a team writes JSON for each rule, and cannot see which one did what. The list of
 * other records does not fit: its rows are links, newest first, without a switch or a place.
 */
export function RulesPage() {
  const rules = useRules();
  const task = useTask();
  const moved = useSignal("");
  const list = rules.value.value ?? [];
  const editId = query.value.get("edit");
  const edited = list.find(({ id }) => id === editId);
  const tried = query.value.get("try");
  const closes = (name: string) => () => navigate(urlWith({ [name]: null }), { replace: true });
  const saved = (close: () => void) => () => {
    rules.reload();
    close();
  };
  const change = (work: () => Promise<unknown>) =>
    task.run(async () => {
      await work();
      rules.set(await readRules());
    });
  const move = (from: number, to: number) =>
    change(async () => {
      for (const { id, position } of movedPositions(list, from, to))
        await patch<Rule>(pathOf(id), { position });
      moved.value = `${list[from]?.name ?? ""} is now rule ${to + 1} of ${list.length}.`;
    });
  return (
    <Page
      title="Rules"
      actions={
        <>
          {can("emails:read") && list.length > 0 ? (
            <a class="button" href={urlWith({ try: "1" })}>
              Try on a message
            </a>
          ) : null}
          <CreateLink scope={SCOPE} text="Create rule" plus />
        </>
      }
    >
      <div class="home">
        <Problem error={rules.error.value} onRetry={rules.reload} />
        <Problem error={task.error.value} />
        <p class="hidden" role="status">
          {moved.value}
        </p>
        <p class="quiet">
          Each message meets these rules as it arrives, from the first to the last. All that match act on it.
          They forward only to <a href={urlWith({ forward: "1" })}>forward addresses</a>, whose owners have
          agreed.
        </p>
        {rules.value.value === null ? null : list.length === 0 ? (
          <NoRules />
        ) : (
          <ol class="records">
            {list.map((rule, at) => (
              <RuleItem
                key={rule.id}
                rule={rule}
                at={at}
                count={list.length}
                task={task}
                onTurn={() => change(() => patch<Rule>(pathOf(rule.id), { enabled: !rule.enabled }))}
                onMove={(to) => move(at, to)}
                onDelete={async () => {
                  await remove(pathOf(rule.id));
                  rules.reload();
                }}
              />
            ))}
          </ol>
        )}
      </div>
      {opensForm(SCOPE) ? (
        <RuleForm record={null} onClose={closes("create")} onSaved={saved(closes("create"))} />
      ) : null}
      {edited !== undefined && opensForm(SCOPE, "edit") ? (
        <RuleForm key={edited.id} record={edited} onClose={closes("edit")} onSaved={saved(closes("edit"))} />
      ) : null}
      {query.value.has("forward") ? <ForwardAddresses onClose={closes("forward")} /> : null}
      {tried !== null && can("emails:read") ? (
        <TryRules rules={list} messageId={tried === "1" ? null : tried} onClose={closes("try")} />
      ) : null}
    </Page>
  );
}

function pathOf(id: string): string {
  return `/v1/rules/${encodeURIComponent(id)}`;
}

function NoRules() {
  const first = { name: "Newsletters", when: { header: { name: "List-Id" } }, then: { archive: true } };
  return (
    <EmptyState
      action={<CreateLink scope={SCOPE} text="Create a rule" />}
      command={curlText("POST", "/v1/rules", first, codeContext())}
    >
      A rule labels, files, answers or refuses mail as it arrives.
    </EmptyState>
  );
}

interface ItemProps {
  rule: Rule;
  /** Its place in the list, from 0, and the number of rules. */
  at: number;
  count: number;
  task: Task;
  onTurn: () => Promise<boolean>;
  onMove: (to: number) => Promise<boolean>;
  onDelete: () => Promise<void>;
}

function RuleItem({ rule, at, count, task, onTurn, onMove, onDelete }: ItemProps) {
  const named = useNamed();
  const { name, inboxId, enabled, disabledReason } = rule;
  const inbox = named.inboxes.find(({ id }) => id === inboxId)?.address ?? inboxId;
  return (
    <li class="record">
      <div class="part-head">
        <h2 dir="auto">{name}</h2>
        <span class="part-actions">
          <Switch
            on={enabled}
            label={`Rule ${name}`}
            disabled={task.busy.value || !can(SCOPE)}
            onTurn={() => void onTurn()}
          />
          {can(SCOPE) ? <Actions {...{ rule, at, count, task, onMove, onDelete }} /> : null}
        </span>
      </div>
      <p class="text" dir="auto">
        {ruleText(rule, namesOf(named))}
      </p>
      {inbox === null ? null : <p class="quiet">Only mail to {inbox}.</p>}
      {disabledReason === null ? null : (
        <p class="record-trouble" role="status">
          It was turned off because what it does kept failing. The last time: {disabledReason}
        </p>
      )}
    </li>
  );
}

function Actions({ rule: { id, name }, at, count, task, onMove, onDelete }: Omit<ItemProps, "onTurn">) {
  return (
    <>
      <MoveButton step={-1} {...{ name, at, count, task, onMove }} />
      <MoveButton step={1} {...{ name, at, count, task, onMove }} />
      <a class="button small" href={urlWith({ edit: id })} aria-label={`Edit ${name}`}>
        Edit
      </a>
      <DeleteButton name={name} noun="rule" label={`Delete ${name}`} onDelete={onDelete}>
        The rule is deleted. Messages that met it keep its name.
      </DeleteButton>
    </>
  );
}

interface MoveProps extends Pick<ItemProps, "at" | "count" | "task" | "onMove"> {
  name: string;
  step: 1 | -1;
}

/** Moves a rule by one place. It keeps the focus, so that the next press moves the rule on. */
function MoveButton({ name, at, count, task, step, onMove }: MoveProps) {
  const button = useRef<HTMLButtonElement>(null);
  const pressed = useRef(false);
  const to = at + step;
  const isEnd = to < 0 || to >= count;
  useEffect(() => {
    const own = button.current;
    // At the end of the list only the other direction is left.
    const other = step < 0 ? own?.nextElementSibling : own?.previousElementSibling;
    const next = own?.disabled === true ? other : own;
    if (pressed.current && next instanceof HTMLElement) next.focus();
    pressed.current = false;
  }, [at]);
  const move = () => {
    if (task.busy.value) return;
    pressed.current = true;
    void onMove(to).then((done) => {
      pressed.current &&= done;
    });
  };
  const label = step < 0 ? "up" : "down";
  return (
    <button
      type="button"
      class="button small"
      ref={button}
      disabled={isEnd}
      aria-label={`Move ${name} ${label}`}
      title={`Move ${label}`}
      onClick={move}
    >
      <Icon name={step < 0 ? "up" : "down"} />
    </button>
  );
}
