import { usePages } from "../../api/pages.ts";
import type { Project } from "../../api/types.ts";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, urlWith } from "../../state/router.ts";
import { projectId, readProjects } from "../../state/session.ts";
import { ProjectDetail } from "./detail.tsx";
import { NewProject } from "./edit.tsx";
import { ProjectDot } from "./project.tsx";

/** The projects of the account, and next to them the one that the path names. */
export function ProjectsPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<Project>("/v1/senders", {}, ({ id }) => id);
  const close = () => navigate("/projects");
  const endCreate = () => navigate(urlWith({ create: null }), { replace: true });
  useKey("Escape", () => selected !== null && close());
  const changed = () => {
    pages.refresh();
    // The switcher and the notice of a suspension show the change too.
    void readProjects().catch(() => {});
  };
  return (
    <Page
      title="Projects"
      layout="panes"
      actions={<CreateLink scope="senders:write" text="Create project" plus />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Projects"
          pages={pages}
          columns="columns-messages"
          heads={["State", "Name", "External id", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => changedUrl(`/projects/${id}`, place.value.search, { create: null })}
          cells={(project) => <Cells project={project} />}
          empty={null}
        />
        {selected === null ? (
          <p class="split-hint quiet">Choose a project to see what it uses.</p>
        ) : (
          <ProjectDetail key={selected} id={selected} onClose={close} onChanged={changed} />
        )}
      </div>
      {opensForm("senders:write") ? (
        <NewProject
          onClose={endCreate}
          onCreated={({ id }) => {
            changed();
            navigate(`/projects/${id}`, { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

function Cells({ project }: { project: Project }) {
  const { id, name, externalId, plan, trustTier, createdAt } = project;
  return (
    <>
      <ProjectDot project={project} />
      <span class="cut who-cell">
        <bdi>{name}</bdi> {id === projectId.value ? <span class="tag">current</span> : null}
      </span>
      <span class="cut subject-cell" dir="auto">
        {externalId}{" "}
        <span class="quiet">
          · plan {plan} · tier {trustTier}
        </span>
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}
