// Makes every call of the package resend-go that Postrider supports. Prints a JSON list of [call, fault or null].
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/resend/resend-go/v2"
)

var results [][2]*string

// call notes whether a call succeeded and its answer is right.
func call[Answer any](name string, check func(Answer) bool, make func() (Answer, error)) Answer {
	answer, err := make()
	var fault *string
	if err != nil {
		text := err.Error()
		fault = &text
	} else if !check(answer) {
		text := fmt.Sprintf("answer %+v", answer)
		fault = &text
	}
	results = append(results, [2]*string{&name, fault})
	return answer
}

func main() {
	ctx := context.Background()
	client := resend.NewClient(os.Getenv("RESEND_API_KEY"))
	sender := os.Getenv("SENDER")
	to := []string{"delivered@simulator.mail.test"}
	message := func() *resend.SendEmailRequest {
		return &resend.SendEmailRequest{From: sender, To: to, Subject: "Hi", Html: "<p>Hi</p>"}
	}

	full := message()
	full.Text = "Hi"
	full.Cc = []string{"delivered+cc@simulator.mail.test"}
	full.ReplyTo = sender
	full.Headers = map[string]string{"X-Order": "1"}
	full.Tags = []resend.Tag{{Name: "a", Value: "b"}}
	full.Attachments = []*resend.Attachment{
		{Filename: "a.txt", Content: []byte("two\r\nlines"), ContentType: "text/plain"},
		{Filename: "b.png", Content: []byte{0x89, 0, 255}, InlineContentId: "logo"},
		{Filename: "c.png", Content: []byte{0x89, 0, 255}, ContentId: "mark"},
	}
	sent := call("Emails.Send", func(a *resend.SendEmailResponse) bool { return a.Id != "" },
		func() (*resend.SendEmailResponse, error) { return client.Emails.Send(full) })
	call("Emails.Get", func(a *resend.Email) bool { return len(a.Cc) == 1 && a.Bcc != nil && a.ReplyTo != nil },
		func() (*resend.Email, error) { return client.Emails.Get(sent.Id) })
	one := 1
	call("Emails.ListWithOptions", func(a resend.ListEmailsResponse) bool { return a.Data[0].Id == sent.Id },
		func() (resend.ListEmailsResponse, error) {
			return client.Emails.ListWithOptions(ctx, &resend.ListOptions{Limit: &one})
		})
	later := message()
	later.ScheduledAt = "in 1 hour"
	planned := call("Emails.SendWithOptions", func(a *resend.SendEmailResponse) bool { return a.Id != "" },
		func() (*resend.SendEmailResponse, error) {
			return client.Emails.SendWithOptions(ctx, later, &resend.SendEmailOptions{IdempotencyKey: "go-1"})
		})
	call("Emails.Update", func(a *resend.UpdateEmailResponse) bool { return a.Id != "" },
		func() (*resend.UpdateEmailResponse, error) {
			return client.Emails.Update(&resend.UpdateEmailRequest{Id: planned.Id, ScheduledAt: "tomorrow at 9am"})
		})
	call("Emails.Cancel", func(a *resend.CancelScheduledEmailResponse) bool { return a.Id != "" },
		func() (*resend.CancelScheduledEmailResponse, error) { return client.Emails.Cancel(planned.Id) })
	call("Batch.Send", func(a *resend.BatchEmailResponse) bool { return len(a.Data) == 2 },
		func() (*resend.BatchEmailResponse, error) {
			return client.Batch.Send([]*resend.SendEmailRequest{message(), full})
		})
	bad := message()
	bad.To = []string{"nobody"}
	call("Batch.SendWithOptions", func(a *resend.BatchEmailResponse) bool { return len(a.Errors) == 1 },
		func() (*resend.BatchEmailResponse, error) {
			return client.Batch.SendWithOptions(ctx, []*resend.SendEmailRequest{message(), bad},
				&resend.BatchSendEmailOptions{BatchValidation: resend.BatchValidationPermissive})
		})

	domain := call("Domains.Create", func(a resend.CreateDomainResponse) bool { return len(a.Records) >= 3 },
		func() (resend.CreateDomainResponse, error) {
			return client.Domains.Create(&resend.CreateDomainRequest{Name: "go.brand.com", Region: "us-east-1"})
		})
	call("Domains.Get", func(a resend.Domain) bool { return a.Id == domain.Id },
		func() (resend.Domain, error) { return client.Domains.Get(domain.Id) })
	call("Domains.List", func(a resend.ListDomainsResponse) bool { return len(a.Data) > 0 },
		func() (resend.ListDomainsResponse, error) { return client.Domains.List() })
	call("Domains.Update", func(a resend.Domain) bool { return a.Id == domain.Id },
		func() (resend.Domain, error) {
			return client.Domains.Update(domain.Id, &resend.UpdateDomainRequest{Tls: resend.Opportunistic})
		})
	call("Domains.Verify", func(a bool) bool { return a },
		func() (bool, error) { return client.Domains.Verify(domain.Id) })
	call("Domains.Remove", func(a bool) bool { return a },
		func() (bool, error) { return client.Domains.Remove(domain.Id) })

	key := call("ApiKeys.Create", func(a resend.CreateApiKeyResponse) bool { return a.Token != "" },
		func() (resend.CreateApiKeyResponse, error) {
			return client.ApiKeys.Create(&resend.CreateApiKeyRequest{Name: "go", Permission: "sending_access"})
		})
	call("ApiKeys.List", func(a resend.ListApiKeysResponse) bool { return len(a.Data) > 0 },
		func() (resend.ListApiKeysResponse, error) { return client.ApiKeys.List() })
	call("ApiKeys.Remove", func(a bool) bool { return a },
		func() (bool, error) { return client.ApiKeys.Remove(key.Id) })

	contact := call("Contacts.Create", func(a resend.CreateContactResponse) bool { return a.Id != "" },
		func() (resend.CreateContactResponse, error) {
			return client.Contacts.Create(&resend.CreateContactRequest{Email: "go@example.com", AudienceId: "all", FirstName: "Ana"})
		})
	call("Contacts.Get", func(a resend.Contact) bool { return a.Id == contact.Id },
		func() (resend.Contact, error) { return client.Contacts.Get("all", contact.Id) })
	call("Contacts.List", func(a resend.ListContactsResponse) bool { return len(a.Data) > 0 },
		func() (resend.ListContactsResponse, error) { return client.Contacts.List("all") })
	change := &resend.UpdateContactRequest{Id: contact.Id, AudienceId: "all", LastName: "B"}
	change.SetUnsubscribed(true)
	call("Contacts.Update", func(resend.UpdateContactResponse) bool { return true },
		func() (resend.UpdateContactResponse, error) { return client.Contacts.Update(change) })
	call("Contacts.Remove", func(a resend.RemoveContactResponse) bool { return a.Deleted },
		func() (resend.RemoveContactResponse, error) { return client.Contacts.Remove("all", contact.Id) })
	call("Audiences.List", func(a resend.ListAudiencesResponse) bool { return len(a.Data) == 1 },
		func() (resend.ListAudiencesResponse, error) { return client.Audiences.List() })
	call("Audiences.Get", func(a resend.Audience) bool { return a.Id == "all" },
		func() (resend.Audience, error) { return client.Audiences.Get("all") })

	webhook := call("Webhooks.Create", func(a *resend.CreateWebhookResponse) bool { return a.SigningSecret != "" },
		func() (*resend.CreateWebhookResponse, error) {
			return client.Webhooks.Create(&resend.CreateWebhookRequest{Endpoint: "http://127.0.0.1:9/", Events: []string{"email.sent"}})
		})
	call("Webhooks.Get", func(a *resend.Webhook) bool { return a.Id != "" },
		func() (*resend.Webhook, error) { return client.Webhooks.Get(webhook.Id) })
	call("Webhooks.List", func(a *resend.ListWebhooksResponse) bool { return len(a.Data) > 0 },
		func() (*resend.ListWebhooksResponse, error) { return client.Webhooks.List() })
	disabled := "disabled"
	call("Webhooks.Update", func(a *resend.UpdateWebhookResponse) bool { return a.Id != "" },
		func() (*resend.UpdateWebhookResponse, error) {
			return client.Webhooks.Update(webhook.Id, &resend.UpdateWebhookRequest{Status: &disabled})
		})
	call("Webhooks.Remove", func(a *resend.DeleteWebhookResponse) bool { return a.Deleted },
		func() (*resend.DeleteWebhookResponse, error) { return client.Webhooks.Remove(webhook.Id) })
	json.NewEncoder(os.Stdout).Encode(results)
}
