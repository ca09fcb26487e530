import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, ImportFile, Item, Query, RequestOptions } from "../types.ts";

/** The answers of an import, and of its preview. */
type BegunImport = Exclude<Answer<"importContacts">, { rows: number }>;
type ImportPreview = Extract<Answer<"importContacts">, { rows: number }>;

/** Recipients with a subscription. */
export class Contacts {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes a contact. */
  create(body: Body<"createContact">, options?: RequestOptions): ApiPromise<Answer<"createContact">> {
    return this.#api.json<"createContact">("POST", "/v1/contacts", { body, options });
  }

  /** Creates or updates up to 100 contacts. Each result has an id and says what happened, or has an error. */
  saveBatch(
    body: Body<"saveContactBatch">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"saveContactBatch">> {
    return this.#api.json<"saveContactBatch">("POST", "/v1/contacts/batch", { body, options });
  }

  /** Imports contacts from a file. A large file needs a longer `timeoutMs`. With `preview` it says what would happen. */
  import(file: ImportFile, query: { preview: "1" }, options?: RequestOptions): ApiPromise<ImportPreview>;
  import(file: ImportFile, query?: { preview?: never }, options?: RequestOptions): ApiPromise<BegunImport>;
  import(file: ImportFile, query?: Query<"importContacts">, options?: RequestOptions): ApiPromise<never> {
    const call = { file, query, options };
    return this.#api.json<"importContacts">("POST", "/v1/contacts/import", call) as ApiPromise<never>;
  }

  /** Lists contacts, newest first. */
  list(query?: Query<"listContacts">, options?: RequestOptions): List<Item<"listContacts">> {
    return this.#api.list<"listContacts">("/v1/contacts", { query, options });
  }

  /** Returns a contact. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getContact">> {
    return this.#api.json<"getContact">("GET", path`/v1/contacts/${id}`, { options });
  }

  /** Changes a contact. */
  update(
    id: string,
    body: Body<"updateContact">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateContact">> {
    return this.#api.json<"updateContact">("PATCH", path`/v1/contacts/${id}`, { body, options });
  }

  /** Deletes a contact. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteContact">> {
    return this.#api.json<"deleteContact">("DELETE", path`/v1/contacts/${id}`, { options });
  }

  /** Unsubscribes a contact. With `messageId` that message gets the event `unsubscribed`. */
  unsubscribe(
    id: string,
    body: Body<"unsubscribeContact"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"unsubscribeContact">> {
    return this.#api.json<"unsubscribeContact">("POST", path`/v1/contacts/${id}/unsubscribe`, {
      body,
      options,
    });
  }

  /** Subscribes a contact again. */
  resubscribe(id: string, options?: RequestOptions): ApiPromise<Answer<"resubscribeContact">> {
    return this.#api.json<"resubscribeContact">("POST", path`/v1/contacts/${id}/resubscribe`, { options });
  }
}

/** Addresses that the project does not send to. */
export class Suppressions {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Suppresses an address. */
  add(body: Body<"addSuppression">, options?: RequestOptions): ApiPromise<Answer<"addSuppression">> {
    return this.#api.json<"addSuppression">("POST", "/v1/suppressions", { body, options });
  }

  /** Suppresses up to 100 addresses. Each result has an id, or an error. */
  addBatch(
    body: Body<"addSuppressionBatch">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"addSuppressionBatch">> {
    return this.#api.json<"addSuppressionBatch">("POST", "/v1/suppressions/batch", { body, options });
  }

  /** Imports suppressed addresses from a file. `reason` is for rows that have none. With `preview` it says what would happen. */
  import(
    file: ImportFile,
    query: Query<"importSuppressions"> & { preview: "1" },
    options?: RequestOptions,
  ): ApiPromise<ImportPreview>;
  import(
    file: ImportFile,
    query?: Query<"importSuppressions"> & { preview?: never },
    options?: RequestOptions,
  ): ApiPromise<BegunImport>;
  import(file: ImportFile, query?: Query<"importSuppressions">, options?: RequestOptions): ApiPromise<never> {
    const call = { file, query, options };
    return this.#api.json<"importSuppressions">("POST", "/v1/suppressions/import", call) as ApiPromise<never>;
  }

  /** Lists suppressed addresses, newest first. */
  list(query?: Query<"listSuppressions">, options?: RequestOptions): List<Item<"listSuppressions">> {
    return this.#api.list<"listSuppressions">("/v1/suppressions", { query, options });
  }

  /** Allows an address again. */
  remove(
    query: Query<"removeSuppression">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"removeSuppression">> {
    return this.#api.json<"removeSuppression">("DELETE", "/v1/suppressions", { query, options });
  }
}

/** Imports of files with contacts or suppressed addresses. They are kept for 7 days. */
export class Imports {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Returns an import: whether it is done, and the numbers of its rows. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getImport">> {
    return this.#api.json<"getImport">("GET", path`/v1/imports/${id}`, { options });
  }

  /** Lists what became of each row, in the order of the file. */
  rows(id: string, query?: Query<"listImportRows">, options?: RequestOptions): List<Item<"listImportRows">> {
    return this.#api.list<"listImportRows">(path`/v1/imports/${id}/rows`, { query, options });
  }
}

/** Messages with placeholders. A template is named by its id or slug. */
export class Templates {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Saves a template. */
  create(body: Body<"createTemplate">, options?: RequestOptions): ApiPromise<Answer<"createTemplate">> {
    return this.#api.json<"createTemplate">("POST", "/v1/templates", { body, options });
  }

  /** Lists templates, newest first. */
  list(query?: Query<"listTemplates">, options?: RequestOptions): List<Item<"listTemplates">> {
    return this.#api.list<"listTemplates">("/v1/templates", { query, options });
  }

  /** Returns a template. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getTemplate">> {
    return this.#api.json<"getTemplate">("GET", path`/v1/templates/${id}`, { options });
  }

  /** Changes a template. */
  update(
    id: string,
    body: Body<"updateTemplate">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateTemplate">> {
    return this.#api.json<"updateTemplate">("PATCH", path`/v1/templates/${id}`, { body, options });
  }

  /** Deletes a template. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteTemplate">> {
    return this.#api.json<"deleteTemplate">("DELETE", path`/v1/templates/${id}`, { options });
  }

  /** Renders a saved template without sending it. */
  render(
    id: string,
    body: Body<"renderTemplate"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"renderTemplate">> {
    return this.#api.json<"renderTemplate">("POST", path`/v1/templates/${id}/render`, { body, options });
  }

  /** Renders a draft without saving it. */
  preview(body: Body<"previewTemplate">, options?: RequestOptions): ApiPromise<Answer<"previewTemplate">> {
    return this.#api.json<"previewTemplate">("POST", "/v1/templates/preview", { body, options });
  }
}
