"""Makes every call of the package resend that Postrider supports. Prints a JSON list of [call, fault or null]."""
import json
import os
import resend

TO = "delivered@simulator.mail.test"
SENDER = os.environ["SENDER"]
INBOUND = os.environ["INBOUND"]
resend.api_key = os.environ["RESEND_API_KEY"]
resend.api_url = os.environ["RESEND_API_URL"]
results = []
def call(name, make, check=lambda answer: True):
    try:
        answer = make()
        good = check(answer)
        results.append([name, None if good else "answer " + repr(answer)])
        return answer
    except Exception as error:
        results.append([name, type(error).__name__ + ": " + str(error)])
        return {"id": "none", "data": []}


def message(**more):
    return {"from": SENDER, "to": [TO], "subject": "Hi", "html": "<p>Hi</p>", **more}


has_id = lambda answer: bool(answer["id"])
is_list = lambda answer: isinstance(answer["data"], list)
bytes_of_file = list(b"two\r\nlines")
file_sent = {"filename": "a.txt", "content": bytes_of_file, "content_type": "text/plain"}
E = resend.Emails
sent = call("emails.send", lambda: E.send(message(
    text="Hi", cc=["delivered+cc@simulator.mail.test"], reply_to=[SENDER], headers={"X-Order": "1"},
    tags=[{"name": "a", "value": "b"}], attachments=[
        file_sent,
        {"filename": "b.png", "content": "iVBORw0K\r\nGgo=", "inline_content_id": "logo"},
        {"filename": "c.png", "content": "iVBORw0KGgo=", "content_id": "mark"},
    ])), has_id)
call("emails.get", lambda: E.get(sent["id"]), lambda one: one["cc"] == ["delivered+cc@simulator.mail.test"] and one["bcc"] == [])
call("emails.list", lambda: E.list({"limit": 1}), lambda page: page["data"][0]["id"] == sent["id"])
planned = call("emails.send later", lambda: E.send(message(scheduled_at="in 1 hour"), {"idempotency_key": "py-1"}), has_id)
call("emails.update", lambda: E.update({"id": planned["id"], "scheduled_at": "tomorrow at 9am"}), has_id)
call("emails.cancel", lambda: E.cancel(planned["id"]), has_id)
files = call("emails.attachments.list", lambda: E.Attachments.list(sent["id"]),
             lambda page: [(f["filename"], f["size"], f.get("content_id")) for f in page["data"]]
             == [("a.txt", 10, None), ("b.png", 8, "logo"), ("c.png", 8, "mark")])
call("emails.attachments.get", lambda: E.Attachments.get(sent["id"], files["data"][0]["id"]), has_id)
call("batch.send", lambda: resend.Batch.send([message(), message()]), lambda answer: len(answer["data"]) == 2)
call("batch.send permissive", lambda: resend.Batch.send([message(), message(to="nobody")], {"batch_validation": "permissive"}),
     lambda answer: len(answer["errors"]) == 1)
call("receiving.list", lambda: E.Receiving.list(), lambda page: page["data"][0]["cc"] == [])
call("receiving.get", lambda: E.Receiving.get(INBOUND), has_id)
received = call("receiving.attachments.list", lambda: E.Receiving.Attachments.list(INBOUND), is_list)
call("receiving.attachments.get", lambda: E.Receiving.Attachments.get(INBOUND, received["data"][0]["id"]), has_id)

D = resend.Domains
domain = call("domains.create", lambda: D.create({"name": "py.brand.com", "region": "us-east-1"}),
              lambda one: {record["record"] for record in one["records"]} <= {"DKIM", "SPF", "Receiving"})
call("domains.get", lambda: D.get(domain["id"]), has_id)
call("domains.list", lambda: D.list(), is_list)
call("domains.update", lambda: D.update({"id": domain["id"], "tls": "opportunistic"}), has_id)
call("domains.verify", lambda: D.verify(domain["id"]), has_id)
call("domains.remove", lambda: D.remove(domain["id"]), has_id)

K = resend.ApiKeys
key = call("api_keys.create", lambda: K.create({"name": "py", "permission": "sending_access"}), lambda one: bool(one["token"]))
call("api_keys.list", lambda: K.list(), is_list)
call("api_keys.update", lambda: K.update({"id": key["id"], "name": "other"}), has_id)
call("api_keys.remove", lambda: K.remove(key["id"]), lambda answer: True)

C = resend.Contacts
contact = call("contacts.create", lambda: C.create({"email": "py@example.com", "first_name": "Ana", "unsubscribed": False,
                                                    "properties": {"plan": "pro"}}), has_id)
call("contacts.create in an audience", lambda: C.create({"audience_id": "all", "email": "py2@example.com"}), has_id)
call("contacts.get", lambda: C.get(id=contact["id"]), has_id)
call("contacts.get by address", lambda: C.get(email="py@example.com"), has_id)
call("contacts.update", lambda: C.update({"id": contact["id"], "unsubscribed": True}), has_id)
call("contacts.list", lambda: C.list(), is_list)
call("contacts.list of an audience", lambda: C.list(audience_id="all"), is_list)
call("contacts.segments.list", lambda: C.Segments.list({"contact_id": contact["id"]}), is_list)
call("contacts.segments.add", lambda: C.Segments.add({"contact_id": contact["id"], "segment_id": "all"}), has_id)
call("contacts.remove", lambda: C.remove(id=contact["id"]), lambda answer: answer["deleted"])
call("segments.list", lambda: resend.Segments.list(), is_list)
call("segments.get", lambda: resend.Segments.get("all"), has_id)
call("audiences.list", lambda: resend.Audiences.list(), is_list)
call("audiences.get", lambda: resend.Audiences.get("all"), has_id)

T = resend.Templates
template = call("templates.create", lambda: T.create({"name": "py", "html": "<p>{{{NAME}}}</p>", "subject": "Hi {{{NAME}}}", "variables": [
    {"key": "NAME", "type": "string", "fallback_value": "you"}]}), has_id)
call("templates.get", lambda: T.get(template["id"]), lambda one: one["variables"][0]["fallback_value"] == "you")
call("templates.list", lambda: T.list(), is_list)
call("templates.update", lambda: T.update({"id": template["id"], "name": "py2"}), has_id)
call("templates.publish", lambda: T.publish(template["id"]), has_id)
call("emails.send with a template", lambda: E.send({"from": SENDER, "to": TO, "template": {"id": template["id"], "variables": {"NAME": "Ana", "COUNT": 3}}}), has_id)
copy = call("templates.duplicate", lambda: T.duplicate(template["id"]), has_id)
call("templates.remove", lambda: T.remove(copy["id"]), has_id)

S = resend.Suppressions
call("suppressions.add", lambda: S.add({"email": "py-s@example.com"}), has_id)
call("suppressions.list", lambda: S.list({"origin": "manual"}), is_list)
call("suppressions.get", lambda: S.get("py-s@example.com"), has_id)
call("suppressions.remove", lambda: S.remove("py-s@example.com"), lambda answer: answer["deleted"])
call("suppressions.batch.add", lambda: S.Batch.add({"emails": ["py-a@example.com", "py-b@example.com"]}), is_list)
call("suppressions.batch.remove", lambda: S.Batch.remove({"emails": ["py-a@example.com", "py-b@example.com"]}), is_list)

W = resend.Webhooks
webhook = call("webhooks.create", lambda: W.create({"endpoint": "http://127.0.0.1:9/", "events": ["email.sent"]}),
               lambda one: bool(one["signing_secret"]))
call("webhooks.get", lambda: W.get(webhook["id"]), has_id)
call("webhooks.list", lambda: W.list(), is_list)
call("webhooks.update", lambda: W.update({"webhook_id": webhook["id"], "status": "disabled"}), has_id)
call("webhooks.list_events", lambda: W.list_events(webhook["id"]), is_list)
call("webhooks.rotate_signing_secret", lambda: W.rotate_signing_secret(webhook["id"]), lambda one: bool(one["signing_secret"]))
call("webhooks.remove", lambda: W.remove(webhook["id"]), lambda answer: answer["deleted"])
print(json.dumps(results))
