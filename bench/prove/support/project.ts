/** Separate projects for a run, each with a domain that receives. */
import { connect, type Socket } from "node:net";
import { publish } from "../../../test/support/dns.ts";
import { PROJECT_HEADER } from "../../../src/http/access/project.ts";
import type { Answer, Ground } from "./service.ts";

/** A project whose calls are made with the account-wide key. */
export interface Project {
  /** Address that mail comes in at. */
  inbox: string;
  /** Address that mail is sent from. */
  from: string;
  /** Calls the API for the project. Throws if the answer is no 2xx. */
  call(method: string, path: string, body?: unknown): Promise<Answer["body"]>;
  /** Posts JSON as it is; the status of the answer, 503 if the connection broke. */
  post(path: string, json: string): Promise<number>;
  /** Posts JSON as it is on a separate connection whose answer is not read. */
  unread(path: string, json: string): Socket;
}

/** A client takes a broken connection for a service that it may ask again. */
const BROKEN = 503;

/** Makes a project without its own limits, with a verified domain that receives and an inbox. */
export async function newProject({ service, dns }: Ground, name: string): Promise<Project> {
  const key = /account-wide key +(\S+)/.exec(service.said())?.[1] ?? "";
  const authorization = `Bearer ${key}`;
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
  ): Promise<Answer["body"]> => {
    const answer = await service.call(method, path, body, { authorization, ...more });
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const sender = await call("POST", "/v1/senders", { name, plan: "unlimited", trustTier: "unlimited" });
  const project: Project = {
    inbox: `in@${name}.test`,
    from: `news@${name}.test`,
    call: (method, path, body) => call(method, path, body, { [PROJECT_HEADER]: sender.id }),
    async post(path, json) {
      const headers = { authorization, [PROJECT_HEADER]: sender.id, "content-type": "application/json" };
      const answered = fetch(`${service.url}${path}`, { method: "POST", headers, body: json });
      return (await answered.catch(() => null))?.status ?? BROKEN;
    },
    unread(path, json) {
      const { hostname, port } = new URL(service.url);
      const lines = Object.entries({
        host: hostname,
        authorization,
        [PROJECT_HEADER]: sender.id,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "content-length": String(Buffer.byteLength(json)),
      }).map(([name, value]) => `${name}: ${value}\r\n`);
      const socket = connect(Number(port), hostname, () =>
        socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${json}`),
      );
      return socket.pause().on("error", () => socket.destroy());
    },
  };
  const made = await project.call("POST", "/v1/domains", { domain: `${name}.test` });
  publish(dns, made.records);
  await project.call("POST", `/v1/domains/${made.id}/verify`);
  const receiving = await project.call("PATCH", `/v1/domains/${made.id}/receiving`, { enabled: true });
  publish(dns, receiving.records);
  await project.call("POST", "/v1/inboxes", { address: project.inbox });
  return project;
}
