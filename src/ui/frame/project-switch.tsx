import { chooseProject, project, projectId, projects } from "../state/session.ts";

/** Chooses the project that all pages show. */
export function ProjectSwitch() {
  const list = projects.value;
  if (list.length <= 1)
    return (
      <p class="project-name" title={project.value?.externalId}>
        {project.value?.name ?? (list.length === 0 ? "" : "No project")}
      </p>
    );
  return (
    <select
      class="project-choice"
      aria-label="Project"
      value={projectId.value ?? ""}
      onChange={(event) => chooseProject(event.currentTarget.value)}
    >
      {list.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}
