import { get } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Setting } from "../../api/types.ts";
import { Advice } from "../../controls/advice.tsx";
import { CopyButton } from "../../controls/copy.tsx";
import { EmptyState } from "../../components/empty.tsx";
import { Page } from "../../components/page.tsx";
import { Problem } from "../../controls/problem.tsx";
import { SearchField } from "../../components/search.tsx";
import { Views } from "../../components/views.tsx";
import { navigate, query, urlWith } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { NoticeSettings } from "./notices.tsx";

const VIEWS = [
  { id: null, name: "All" },
  { id: "own", name: "Set by you" },
  { id: "notices", name: "Notices" },
] as const;

const SOURCES: Readonly<Record<string, string>> = {
  environment: "from the environment",
  file: "from a file",
  default: "default",
};

/** The settings in effect, with the source and meaning of each value, and who gets notices. */
export function SettingsPage() {
  const wanted = query.value.get("q") ?? "";
  const view = query.value.get("view");
  const search = (
    <SearchField
      label="Search settings"
      placeholder="Search name, value, meaning"
      value={wanted}
      onSearch={(q) => navigate(urlWith({ q }), { replace: true })}
    />
  );
  const views = can("senders:read") ? VIEWS : VIEWS.filter(({ id }) => id !== "notices");
  const isNotices = view === "notices" && can("senders:read");
  return (
    <Page
      title="Settings"
      tools={isNotices ? null : search}
      bar={<Views label="Show" name="view" path="/settings" views={views} />}
    >
      {isNotices ? <NoticeSettings /> : <SettingList wanted={wanted} own={view === "own"} />}
    </Page>
  );
}

function SettingList({ wanted, own }: { wanted: string; own: boolean }) {
  const settings = useResource("settings", () =>
    get<{ data: Setting[] }>("/v1/settings", {}, { account: true }),
  );
  const all = settings.value.value?.data ?? null;
  const found = (all ?? []).filter(
    (setting) => fits(setting, wanted.toLowerCase()) && (!own || setting.source !== "default"),
  );
  return (
    <>
      <Problem error={settings.error.value} onRetry={settings.reload} />
      {all === null ? null : found.length === 0 ? (
        <NoSettings own={own && wanted === ""} />
      ) : (
        <>
          <p class="hint">
            Settings are environment variables of the process. Change one there and restart the process.
          </p>
          <ul class="settings" aria-label="Settings">
            {found.map((setting) => (
              <SettingRow key={setting.name} setting={setting} />
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function fits({ name, value, help }: Setting, wanted: string): boolean {
  return [name, value ?? "", help].some((text) => text.toLowerCase().includes(wanted));
}

function SettingRow({ setting: { name, value, source, secret, set, help } }: { setting: Setting }) {
  return (
    <li>
      <div>
        <p class="id">
          <code class="setting-name">{name}</code>
          <CopyButton text={name} what="name" />
        </p>
        <p class="setting-help">
          <Advice text={help} />
        </p>
      </div>
      <p class="setting-value">
        {value !== null ? (
          <code>{value}</code>
        ) : (
          <span class="quiet">{secret ? (set ? "secret, set" : "secret, not set") : "none"}</span>
        )}
        {!set && source === "default" ? null : (
          <span class={source === "default" ? "quiet" : "tag"}>{SOURCES[source] ?? source}</span>
        )}
      </p>
    </li>
  );
}

function NoSettings({ own }: { own: boolean }) {
  return (
    <EmptyState
      action={
        <a class="button" href="/settings">
          Show all settings
        </a>
      }
    >
      {own ? "Every setting has its default." : "No setting fits this search."}
    </EmptyState>
  );
}
