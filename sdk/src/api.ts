// Made by `bun scripts/sdk-types.ts` from the OpenAPI document. Changes by hand are lost.

export interface components {
    schemas: {
        /** @description The body of every answer outside 2xx. */
        Error: {
            error: {
                /** @enum {string} */
                type: "invalid_request" | "authentication_error" | "permission_error" | "not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "payload_too_large" | "validation_error" | "rate_limited" | "internal_error" | "service_unavailable";
                message: string;
                /** @enum {string} */
                code?: "missing_field" | "invalid_email" | "invalid_from" | "domain_not_verified" | "test_mode_recipient" | "template_not_found" | "rendering_failure" | "too_many_recipients" | "message_too_large" | "invalid_attachment" | "invalid_item" | "unknown_field" | "invalid_header" | "schedule_out_of_range" | "daily_quota_exceeded" | "trust_tier_exceeded" | "quota_exceeded" | "recipient_not_allowed" | "sender_suspended" | "missing_scope" | "idempotency_mismatch" | "idempotency_in_flight" | "duplicate" | "invalid_state" | "internal_error";
                /** @description Path of the field at fault, such as `to[0].email`. */
                param?: string;
                issues?: {
                    message: string;
                    param: string;
                    /** @enum {string} */
                    code?: "missing_field" | "invalid_email" | "invalid_from" | "domain_not_verified" | "test_mode_recipient" | "template_not_found" | "rendering_failure" | "too_many_recipients" | "message_too_large" | "invalid_attachment" | "invalid_item" | "unknown_field" | "invalid_header" | "schedule_out_of_range" | "daily_quota_exceeded" | "trust_tier_exceeded" | "quota_exceeded" | "recipient_not_allowed" | "sender_suspended" | "missing_scope" | "idempotency_mismatch" | "idempotency_in_flight" | "duplicate" | "invalid_state" | "internal_error";
                }[];
                /**
                 * Format: date-time
                 * @description When a used-up quota is available again.
                 */
                resetAt?: string;
                requestId: string;
            };
        };
        /** @description Any JSON value. Lists may be nested deeper than the schema shows. */
        JsonValue: string | number | boolean | null | {
            [key: string]: components["schemas"]["JsonValue"];
        } | (string | number | boolean | null | {
            [key: string]: components["schemas"]["JsonValue"];
        } | (string | number | boolean | null | {
            [key: string]: components["schemas"]["JsonValue"];
        } | (string | number | boolean | null | {
            [key: string]: components["schemas"]["JsonValue"];
        })[])[])[];
        /** Home */
        Home: {
            /** @constant */
            name: "Postrider";
            /** @description How outgoing mail leaves: `capture`, `relay` or `mx`. */
            delivery: string;
            /** @description URL of the reference. */
            reference: string;
            /** @description URL of the OpenAPI document. */
            openapi: string;
            /** @description URL that tells whether the service can work. */
            ready: string;
        };
        /**
         * SendAddress
         * @description An address with an optional display name.
         * @example {
         *       "email": "ana@example.com"
         *     }
         */
        SendAddress: {
            /**
             * Format: idn-email
             * @description Email address.
             * @example ana@example.com
             */
            email: string;
            /**
             * @description Display name.
             * @example Ana
             */
            name?: string;
        };
        /** SendAttachment */
        SendAttachment: {
            /** @example hello.txt */
            filename: string;
            /**
             * @description The file's bytes in padded base64, without line breaks.
             * @example SGVsbG8=
             */
            content: string;
            /**
             * @description MIME type. If absent, it is derived from the filename.
             * @example text/plain
             */
            contentType?: string;
            /**
             * @description Content-ID, for `cid:` links in the html.
             * @example logo
             */
            contentId?: string;
            /**
             * @description If absent: `inline` with a `contentId`, else `attachment`.
             * @enum {string}
             */
            disposition?: "attachment" | "inline";
        };
        /**
         * SendCalendar
         * @description An invitation, an answer to one, or its cancellation (RFC 5546). It becomes the last alternative of the body and the file `invite.ics`.
         */
        SendCalendar: {
            /**
             * @description The same as METHOD in the content.
             * @example REQUEST
             * @enum {string}
             */
            method: "REQUEST" | "CANCEL" | "PUBLISH" | "REPLY";
            /**
             * @description An iCalendar object (RFC 5545). Its lines are folded again, and end in CRLF.
             * @example BEGIN:VCALENDAR
             *     METHOD:REQUEST
             *     END:VCALENDAR
             */
            content: string;
        };
        /**
         * SendItem
         * @description A message to send.
         * @example {
         *       "from": {
         *         "email": "ana@example.com"
         *       },
         *       "to": [
         *         {
         *           "email": "ben@example.com"
         *         }
         *       ],
         *       "subject": "Hello",
         *       "text": "Hi Ben"
         *     }
         */
        SendItem: {
            /**
             * @example ana@example.com
             * @example {
             *       "email": "ana@example.com"
             *     }
             */
            from: string | components["schemas"]["SendAddress"];
            /**
             * @description `to`, `cc` and `bcc` have at most 50 recipients together, unless the operator set another limit.
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            cc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            bcc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            replyTo?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @description Required unless `templateId` is given.
             * @example Hello
             */
            subject?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /** @example Hi Ana */
            text?: string;
            /**
             * @description Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.
             * @example order-confirmation
             */
            templateId?: string;
            /**
             * @description Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
             * @example {
             *       "name": "Ana"
             *     }
             */
            data?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.
             * @example {
             *       "X-Order": "42"
             *     }
             */
            headers?: {
                [key: string]: string;
            };
            /** @description At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`. */
            tags?: {
                /** @example campaign */
                name: string;
                /** @example spring */
                value: string;
            }[];
            attachments?: components["schemas"]["SendAttachment"][];
            calendar?: components["schemas"]["SendCalendar"];
            /**
             * Format: date-time
             * @description ISO 8601 time with a zone at which to send. A past time sends now.
             * @example 2026-01-31T09:30:00Z
             */
            scheduledAt?: string;
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
            /** @description Overrides the project's tracking settings. */
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /**
             * @description `bulk` mail leaves after the rest: it has one turn in five, together with retries. If absent: `bulk` with `unsubscribeLink` or a List-Unsubscribe header, else `transactional`.
             * @example transactional
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            /** @description If false, the body, files and template data go as soon as every recipient is final. The record and its events stay. */
            keepContent?: boolean;
            /**
             * @description Id of a topic. The message has `unsubscribeLink`, its link leaves the topic, and recipients who do not get the topic when it leaves are `rejected`.
             * @example top_01hzy8
             */
            topicId?: string;
            /** @description Adds one-click unsubscribe headers (RFC 8058). Also defines `unsubscribeUrl` for placeholders in the template, subject, html and text. */
            unsubscribeLink?: boolean;
        };
        /** AcceptedMessage */
        AcceptedMessage: {
            id: string;
            /** @enum {string} */
            status: "accepted" | "queued";
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            scheduledAt?: string;
        };
        /** Warning */
        Warning: {
            /** @description Path of the field, such as `scheduled_at`. */
            param: string;
            message: string;
        };
        /**
         * MayWarn
         * @description What the answer to a write may also have.
         */
        MayWarn: {
            /** @description What was ignored or may not do what you expect. Absent if there is nothing to say. */
            warnings?: components["schemas"]["Warning"][];
        };
        /** Highlight */
        Highlight: {
            /** @enum {string} */
            field: "subject" | "body" | "fileName";
            /** @description At most 200 characters of it, as plain text on one line. */
            fragment: string;
            /** @description Where the words are in the fragment, in UTF-16 units. */
            ranges: {
                start: number;
                end: number;
            }[];
        };
        /**
         * MessageSummary
         * @description A message as lists show it.
         */
        MessageSummary: {
            id: string;
            /** @description Sender address. */
            from: string;
            fromName: string | null;
            /** @description Recipient addresses. */
            to: string[];
            toName: string | null;
            subject: string;
            /** @enum {string} */
            status: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed" | "inbound_rejected";
            /** @enum {string} */
            direction: "inbound" | "outbound";
            /**
             * @description Present while it waits until another key approves it.
             * @constant
             */
            awaitingApproval?: true;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /** @description Where the words of `text` are. Absent without `text`. */
            highlights?: components["schemas"]["Highlight"][];
        };
        /** ItemError */
        ItemError: {
            message: string;
            /**
             * @description If the fault has no specific code: the type of the error.
             * @enum {string}
             */
            code: "missing_field" | "invalid_email" | "invalid_from" | "domain_not_verified" | "test_mode_recipient" | "template_not_found" | "rendering_failure" | "too_many_recipients" | "message_too_large" | "invalid_attachment" | "invalid_item" | "unknown_field" | "invalid_header" | "schedule_out_of_range" | "daily_quota_exceeded" | "trust_tier_exceeded" | "quota_exceeded" | "recipient_not_allowed" | "sender_suspended" | "missing_scope" | "idempotency_mismatch" | "idempotency_in_flight" | "duplicate" | "invalid_state" | "internal_error" | "invalid_request" | "authentication_error" | "permission_error" | "not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "payload_too_large" | "validation_error" | "rate_limited" | "service_unavailable";
            /** @description The field at fault. Empty if it is the whole item. */
            param: string;
            /** @enum {string} */
            type: "invalid_request" | "authentication_error" | "permission_error" | "not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "payload_too_large" | "validation_error" | "rate_limited" | "internal_error" | "service_unavailable";
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            resetAt?: string;
        };
        /** SendCheck */
        SendCheck: {
            wouldAccept: boolean;
            error?: components["schemas"]["ItemError"];
            /** @description Octets of the message, roughly. */
            size: number;
            /** @description True if Gmail would hide the end of the html. */
            clipped: boolean;
            findings: {
                /** @enum {string} */
                level: "error" | "warning" | "info";
                code: string;
                message: string;
                fix: string;
            }[];
        };
        /** Attachment */
        Attachment: {
            id: string;
            filename: string;
            contentType: string;
            /** @description Bytes. */
            size: number;
            contentId: string | null;
            /** @enum {string} */
            disposition: "attachment" | "inline";
        };
        /** Recipient */
        Recipient: {
            email: string;
            /** @enum {string} */
            kind: "to" | "cc" | "bcc";
            /** @enum {string} */
            status: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed" | "inbound_rejected";
            reason: string | null;
            attempts: number;
            mx: string | null;
            tls: string | null;
            smtpCode: number | null;
            enhancedCode: string | null;
            diagnostic: string | null;
            lastEventAt: string | null;
        };
        /** MailAddress */
        MailAddress: {
            email: string;
            name?: string;
        };
        /**
         * Authentication
         * @description The findings of SPF, DKIM, DMARC and ARC.
         */
        Authentication: {
            spf: {
                /** @enum {string} */
                result: "pass" | "fail" | "softfail" | "neutral" | "none" | "policy" | "temperror" | "permerror";
                domain: string | null;
            };
            /** @description One per signature. */
            dkim: {
                /** @enum {string} */
                result: "pass" | "fail" | "softfail" | "neutral" | "none" | "policy" | "temperror" | "permerror";
                domain: string | null;
                selector: string | null;
            }[];
            dmarc: {
                /** @enum {string} */
                result: "pass" | "fail" | "softfail" | "neutral" | "none" | "policy" | "temperror" | "permerror";
                policy: ("none" | "quarantine" | "reject") | null;
                domain: string | null;
            };
            arc: {
                /** @enum {string} */
                result: "pass" | "fail" | "softfail" | "neutral" | "none" | "policy" | "temperror" | "permerror";
            };
        };
        /**
         * Spam
         * @description The verdict of the spam filter. Null if there is no filter, it failed, or the message is too large for it.
         */
        Spam: {
            /** @example 7.4 */
            score: number;
            /**
             * @description Points from which the filter takes a message for spam.
             * @example 15
             */
            required: number;
            /**
             * @description The filter's advice, such as `no action`, `add header` or `reject`.
             * @example add header
             */
            action: string;
            /** @description Rules that the message met, the heaviest first; at most 50. */
            symbols: {
                /** @example DMARC_POLICY_REJECT */
                name: string;
                /** @example 2 */
                score: number;
            }[];
        };
        /**
         * SenderVerdict
         * @description Who wrote: what is proven about From. Null for mail that was stored before version 1.1.
         */
        SenderVerdict: {
            /**
             * @description The address in From, with its domain in A-labels.
             * @example ada@example.com
             */
            address: string;
            /** @description True if DMARC passes for the one address in From. A domain without a DMARC record never passes. */
            authenticated: boolean;
            /** @description True if the sender is authenticated, and is a contact or was written to in this thread. */
            known: boolean;
            /**
             * @description The same in one word, to act on. Of simulated mail: `unauthenticated`.
             * @enum {string}
             */
            trust: "blocked" | "unauthenticated" | "authenticated" | "known" | "allowed";
        };
        /** AppliedRule */
        AppliedRule: {
            id: string;
            /** @example Newsletters */
            name: string;
        };
        /**
         * EventDetails
         * @description The details under the name of the event's type. Empty if the type has none.
         */
        EventDetails: {
            /** @description Of a scheduled message. */
            accepted?: {
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                scheduledAt: string;
            };
            sending?: {
                attempt: number;
            };
            sent?: {
                mx: string | null;
                tls: string | null;
                smtpCode: number | null;
                /** @description Absent if the webhook gets no content. */
                response?: string | null;
            };
            delivery?: {
                mx: string | null;
                tls: string | null;
                smtpCode: number | null;
                /** @description Absent if the webhook gets no content. */
                response?: string | null;
            };
            delivery_delayed?: {
                attempt: number;
                nextAttemptAt: string | null;
                category?: string | null;
                smtpCode?: number | null;
                enhancedCode?: string | null;
                /** @description Absent if the webhook gets no content. */
                diagnostic?: string | null;
                mx?: string | null;
            };
            bounce?: {
                /**
                 * @description A hard bounce suppresses the address for good, a soft one for 7 days.
                 * @enum {string}
                 */
                type: "hard" | "soft";
                reason: string | null;
                category?: string | null;
                smtpCode?: number | null;
                enhancedCode?: string | null;
                /** @description Absent if the webhook gets no content. */
                diagnostic?: string | null;
                mx?: string | null;
            };
            complaint?: {
                feedbackType: string | null;
            };
            rejected?: {
                reason: string | null;
                category?: string | null;
                smtpCode?: number | null;
                enhancedCode?: string | null;
                /** @description Absent if the webhook gets no content. */
                diagnostic?: string | null;
                mx?: string | null;
            };
            rendering_failure?: {
                category?: string | null;
                smtpCode?: number | null;
                enhancedCode?: string | null;
                /** @description Absent if the webhook gets no content. */
                diagnostic?: string | null;
                mx?: string | null;
                /** @description Absent if the webhook gets no content. */
                reason?: string | null;
            };
            failed?: {
                reason: string | null;
                category?: string | null;
                smtpCode?: number | null;
                enhancedCode?: string | null;
                /** @description Absent if the webhook gets no content. */
                diagnostic?: string | null;
                mx?: string | null;
            };
            open?: {
                ip: string | null;
                userAgent: string | null;
                /** @description True for the recipient's first open, also by a machine. */
                first: boolean;
                /** @description True for a proxy, scanner or prefetch. */
                machine: boolean;
            };
            click?: {
                /** @description Absent if the webhook gets no content. */
                url?: string;
                ip: string | null;
                userAgent: string | null;
                /** @description True for a proxy, scanner or prefetch. */
                machine: boolean;
            };
            unsubscribed?: {
                /**
                 * @description The way that the recipient took: `page` is the button behind the link.
                 * @enum {string}
                 */
                how: "one_click" | "page" | "mail" | "api";
                /** @description The topic that they left, if it is not the whole subscription. */
                topicId?: string;
            };
            inbound_received?: {
                inboxId: string | null;
                from?: components["schemas"]["MailAddress"];
                /** @description Absent if the webhook gets no content. */
                to?: components["schemas"]["MailAddress"][];
                /** @description Absent if the webhook gets no content. */
                subject?: string;
                /** @description Absent if the webhook gets no content. */
                auth?: components["schemas"]["Authentication"] | null;
                threadId: string | null;
                /** @description Absent if the webhook gets no content. */
                text?: string | null;
                /** @description Absent if the webhook gets no content. */
                html?: string | null;
                /** @description True if text or html is longer than the 256 KiB shown, or was removed by retention. Absent if the webhook gets no content. */
                truncated?: boolean;
                /** @description Absent if the webhook gets no content. */
                attachments?: components["schemas"]["Attachment"][];
                spam: components["schemas"]["Spam"] | null;
                /** @description Absent if the webhook gets no content. */
                sender?: components["schemas"]["SenderVerdict"] | null;
            };
            inbound_rejected?: {
                /**
                 * @description Who refused it: the policy of its author's domain, a rule, or the inbox, for its sender. `dropped`: a rule let it be accepted, and kept only its header.
                 * @enum {string}
                 */
                reason: "dmarc" | "rule" | "dropped" | "sender_blocked" | "sender_unauthenticated" | "sender_not_allowed";
                rule?: components["schemas"]["AppliedRule"];
                inboxId: string | null;
                from?: components["schemas"]["MailAddress"];
                /** @description Absent if the webhook gets no content. */
                to?: components["schemas"]["MailAddress"][];
                /** @description Absent if the webhook gets no content. */
                subject?: string;
                /** @description Absent if the webhook gets no content. */
                auth?: components["schemas"]["Authentication"] | null;
            };
        };
        /** MessageEvent */
        MessageEvent: {
            id: string;
            /** @enum {string} */
            type: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected";
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            email: string | null;
            data: components["schemas"]["EventDetails"];
        };
        /**
         * Envelope
         * @description The SMTP transaction that brought the message.
         */
        Envelope: {
            /** @description Reverse-path. Empty: the null one. */
            mailFrom: string;
            rcptTo: string[];
            ip: string;
            helo: string;
            tls: string | null;
        };
        /**
         * Invitation
         * @description The event of the first calendar file. Null if there is none.
         */
        Invitation: {
            /**
             * @description `REQUEST` asks for an answer (RFC 5546).
             * @example REQUEST
             */
            method: string;
            /** @example 7f3a@calendar.example */
            uid: string;
            summary: string | null;
            location: string | null;
            start: string | null;
            end: string | null;
            timeZone: string | null;
            recurring: boolean;
            organizer: string | null;
            /** @description At most 100. */
            attendees: {
                email: string;
                /** @example needs-action */
                answer: string;
            }[];
        };
        /** Forward */
        Forward: {
            /** @example rul_01hzy8 */
            ruleId: string;
            to: string | null;
            emailId: string | null;
            /**
             * @description Status of that message; `waiting` before it is sent; `not_forwarded` with the `reason`.
             * @example delivered
             */
            status: string;
            reason: string | null;
        };
        /**
         * Message
         * @description A message with its body and its events.
         */
        Message: {
            id: string;
            /** @description Sender address. */
            from: string;
            fromName: string | null;
            /** @description Recipient addresses. */
            to: string[];
            toName: string | null;
            subject: string;
            /** @enum {string} */
            status: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed" | "inbound_rejected";
            /** @enum {string} */
            direction: "inbound" | "outbound";
            /**
             * @description Present while it waits until another key approves it.
             * @constant
             */
            awaitingApproval?: true;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            senderId: string;
            messageId: string | null;
            cc: string[];
            bcc: string[];
            replyTo: string[];
            html: string | null;
            text: string | null;
            headers: {
                [key: string]: string;
            };
            tags: {
                name: string;
                value: string;
            }[];
            attachments: components["schemas"]["Attachment"][];
            templateId: string | null;
            /** @description The broadcast that it is part of. */
            broadcastId?: string;
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            scheduledAt: string | null;
            sentAt: string | null;
            threadId: string | null;
            inboxId: string | null;
            size: number;
            testMode?: boolean;
            /** @description The topic that its unsubscribe link leaves. */
            topicId?: string;
            /**
             * @description Only of outbound messages.
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            recipients: components["schemas"]["Recipient"][];
            /** @description Oldest first. */
            events: components["schemas"]["MessageEvent"][];
            envelope?: components["schemas"]["Envelope"] | null;
            auth?: components["schemas"]["Authentication"] | null;
            sender?: components["schemas"]["SenderVerdict"] | null;
            spam?: components["schemas"]["Spam"] | null;
            invitation?: components["schemas"]["Invitation"] | null;
            unread?: ("header_too_long" | "too_many_lines" | "not_mime" | "too_slow" | "too_many_parts" | "nested_too_deep" | "part_headers_too_long") | null;
            /** @description The rules that a received message met, in their order. */
            rules?: components["schemas"]["AppliedRule"][];
            /** @description What rules have forwarded of a received message, and where. */
            forwarded?: components["schemas"]["Forward"][];
            /** @description The received message that a rule has forwarded as this one. */
            forwardOf?: {
                emailId: string;
                ruleId: string;
            };
            replyText?: string | null;
            /** @description Web addresses in the message, in order, each once, as they were before tracking; at most 100. Of received, captured and test-mode mail. */
            links?: {
                url: string;
                text: string;
            }[];
            /** @description Codes to verify an address or to sign in, the most likely first; at most 5. Of the same mail. */
            codes?: string[];
            /** @description The same addresses with their display names. */
            addresses: {
                from: components["schemas"]["MailAddress"];
                to: components["schemas"]["MailAddress"][];
                cc: components["schemas"]["MailAddress"][];
                bcc: components["schemas"]["MailAddress"][];
                replyTo: components["schemas"]["MailAddress"][];
            };
        };
        /**
         * DeliveryAttempt
         * @description One delivery attempt to one recipient, with its SMTP conversation.
         */
        DeliveryAttempt: {
            /** @description The recipient. */
            email: string;
            /** @description Number of the attempt for this recipient. */
            attempt: number;
            /**
             * @description Where the attempt has left the recipient.
             * @enum {string}
             */
            status: "sent" | "delivered" | "delivery_delayed" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed";
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            startedAt: string;
            /** @description Milliseconds. */
            durationMs: number;
            mx: string | null;
            ip: string | null;
            tls: string | null;
            egress: string | null;
            routeId: string | null;
            smtpCode: number | null;
            enhancedCode: string | null;
            diagnostic: string | null;
            /**
             * @description The SMTP conversation. `C: ` marks this service, `S: ` the other server, and `* ` other events. It contains neither the message nor a password. If it is very long, its middle is left out.
             * @example [
             *       "* connecting to mx.example.com [192.0.2.25]:25",
             *       "S: 220 mx.example.com ESMTP",
             *       "C: EHLO mx.postrider.example",
             *       "S: 250 mx.example.com PIPELINING SIZE 10485760",
             *       "C: MAIL FROM:<b+0k3v@bounce.postrider.example> SIZE=4711",
             *       "C: RCPT TO:<ada@example.com>",
             *       "C: DATA",
             *       "S: 250 2.1.0 Ok",
             *       "S: 550 5.1.1 No such user",
             *       "S: 554 5.5.1 No valid recipients"
             *     ]
             */
            lines: string[];
        };
        /** Explanation */
        Explanation: {
            summary: string;
            recipients: {
                email: string;
                status: string;
                /** @description What happened. */
                what: string;
                /** @description Why, with the reply of the mail server if there is one. */
                why: string;
                /**
                 * @description Who can change it. `us`: the operator of this service.
                 * @enum {string}
                 */
                who: "you" | "recipient" | "provider" | "us" | "nobody";
                /** @description What to do. */
                next: string;
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                nextAttemptAt?: string;
            }[];
        };
        /** ReleaseEmail */
        ReleaseEmail: {
            /**
             * @description `to`, `cc` and `bcc` have at most 50 recipients together, unless the operator set another limit.
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @description The route to take. If absent: the first of `routeIds` of the From domain or the project, else the relay of SMTP_RELAY_URL.
             * @example default
             */
            routeId?: string;
        };
        /** ForwardEmail */
        ForwardEmail: {
            /**
             * @description `to`, `cc` and `bcc` have at most 50 recipients together, unless the operator set another limit.
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /** @example Hi Ana */
            text?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /**
             * @description `inline` (if absent): the text below yours, with the files. `attachment`: the whole message as one file, `.eml`.
             * @enum {string}
             */
            as?: "inline" | "attachment";
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
        };
        /** ListedThread */
        ListedThread: {
            id: string;
            inboxId: string;
            senderId: string;
            subject: string;
            /** @description First characters of the last message. */
            preview: string;
            participants: string[];
            /**
             * @description Display names that recent messages give to participants, by address. Anyone can write any name, so show the address next to it.
             * @example {}
             */
            participantNames: {
                [key: string]: string;
            };
            messageCount: number;
            hasAttachments: boolean;
            lastMessageId: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            lastMessageAt: string;
            lastInboundAt: string | null;
            /** @description False if a message has arrived since the thread was marked as read. */
            read: boolean;
            /** @description Archived threads are not listed unless asked for. New mail brings one back. */
            archived: boolean;
            labels: string[];
            assigneeId: string | null;
            /** @enum {string} */
            folder: "inbox" | "spam" | "trash" | "snoozed";
            snoozedUntil: string | null;
            deletesAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
            /** @description The newest message with the words of `text`. Absent without `text`. */
            matchedMessageId?: string;
            /** @description Where the words of `text` are. Absent without `text`. */
            highlights?: components["schemas"]["Highlight"][];
        };
        /** Mailbox */
        Mailbox: {
            /** @description The most used first, at most 200. */
            labels: {
                /** @example billing */
                label: string;
                /** @example 12 */
                threads: number;
            }[];
            /** @description By address. Without those who are disabled. */
            members: {
                /** @example mem_01hzy8 */
                id: string;
                /** @example ana@example.com */
                email: string;
            }[];
        };
        /** Thread */
        Thread: {
            id: string;
            inboxId: string;
            senderId: string;
            subject: string;
            /** @description First characters of the last message. */
            preview: string;
            participants: string[];
            /**
             * @description Display names that recent messages give to participants, by address. Anyone can write any name, so show the address next to it.
             * @example {}
             */
            participantNames: {
                [key: string]: string;
            };
            messageCount: number;
            hasAttachments: boolean;
            lastMessageId: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            lastMessageAt: string;
            lastInboundAt: string | null;
            /** @description False if a message has arrived since the thread was marked as read. */
            read: boolean;
            /** @description Archived threads are not listed unless asked for. New mail brings one back. */
            archived: boolean;
            labels: string[];
            assigneeId: string | null;
            /** @enum {string} */
            folder: "inbox" | "spam" | "trash" | "snoozed";
            snoozedUntil: string | null;
            deletesAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** ThreadMessage */
        ThreadMessage: {
            id: string;
            /** @description Sender address. */
            from: string;
            fromName: string | null;
            /** @description Recipient addresses. */
            to: string[];
            toName: string | null;
            subject: string;
            /** @enum {string} */
            status: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed" | "inbound_rejected";
            /** @enum {string} */
            direction: "inbound" | "outbound";
            /**
             * @description Present while it waits until another key approves it.
             * @constant
             */
            awaitingApproval?: true;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            senderId: string;
            messageId: string | null;
            cc: string[];
            bcc: string[];
            replyTo: string[];
            html: string | null;
            text: string | null;
            headers: {
                [key: string]: string;
            };
            tags: {
                name: string;
                value: string;
            }[];
            attachments: components["schemas"]["Attachment"][];
            templateId: string | null;
            /** @description The broadcast that it is part of. */
            broadcastId?: string;
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            scheduledAt: string | null;
            sentAt: string | null;
            threadId: string | null;
            inboxId: string | null;
            size: number;
            testMode?: boolean;
            /** @description The topic that its unsubscribe link leaves. */
            topicId?: string;
            /**
             * @description Only of outbound messages.
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            recipients: components["schemas"]["Recipient"][];
            /** @description Oldest first. */
            events: components["schemas"]["MessageEvent"][];
            envelope?: components["schemas"]["Envelope"] | null;
            auth?: components["schemas"]["Authentication"] | null;
            sender?: components["schemas"]["SenderVerdict"] | null;
            spam?: components["schemas"]["Spam"] | null;
            invitation?: components["schemas"]["Invitation"] | null;
            unread?: ("header_too_long" | "too_many_lines" | "not_mime" | "too_slow" | "too_many_parts" | "nested_too_deep" | "part_headers_too_long") | null;
            /** @description The rules that a received message met, in their order. */
            rules?: components["schemas"]["AppliedRule"][];
            /** @description What rules have forwarded of a received message, and where. */
            forwarded?: components["schemas"]["Forward"][];
            /** @description The received message that a rule has forwarded as this one. */
            forwardOf?: {
                emailId: string;
                ruleId: string;
            };
            replyText?: string | null;
            /** @description The same addresses with their display names. */
            addresses: {
                from: components["schemas"]["MailAddress"];
                to: components["schemas"]["MailAddress"][];
                cc: components["schemas"]["MailAddress"][];
                bcc: components["schemas"]["MailAddress"][];
                replyTo: components["schemas"]["MailAddress"][];
            };
            /**
             * @description True if something is shortened or left out. `GET /v1/emails/{id}` has all of it.
             * @constant
             */
            truncated?: true;
        };
        /** Author */
        Author: {
            /**
             * @description `member`, `key`, `cli` or `service`.
             * @example member
             */
            type: string;
            id: string | null;
            name: string | null;
        };
        /** Note */
        Note: {
            /** @example not_01hzy8 */
            id: string;
            author: components["schemas"]["Author"];
            /** @example She called about it. */
            text: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** ThreadChanges */
        ThreadChanges: {
            /** @description False marks the thread as unread again. */
            read?: boolean;
            archived?: boolean;
            /** @description All labels that the thread has then. */
            labels?: string[];
            assigneeId?: string | null;
            /**
             * @description What is put into `spam` or `trash` is deleted after 30 days. To snooze, give `snoozedUntil`.
             * @enum {string}
             */
            folder?: "inbox" | "spam" | "trash";
            snoozedUntil?: string | null;
        };
        /** NewReply */
        NewReply: {
            /** @example Hi Ana */
            text?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /**
             * @description Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.
             * @example order-confirmation
             */
            templateId?: string;
            /**
             * @description Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
             * @example {
             *       "name": "Ana"
             *     }
             */
            data?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Addresses in place of the sender of that message.
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            cc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            bcc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            attachments?: components["schemas"]["SendAttachment"][];
            calendar?: components["schemas"]["SendCalendar"];
            /**
             * @description Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.
             * @example {
             *       "X-Order": "42"
             *     }
             */
            headers?: {
                [key: string]: string;
            };
            /** @description At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`. */
            tags?: {
                /** @example campaign */
                name: string;
                /** @example spring */
                value: string;
            }[];
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
            /**
             * @description Answers the invitation in that message: the reply goes to its organizer with a calendar object. `text` and `html` may be absent.
             * @enum {string}
             */
            invitation?: "accepted" | "tentative" | "declined";
            /** @description Also replies to the other recipients of that message. */
            replyAll?: boolean;
            /**
             * @description The message to reply to. If absent: the newest inbound message of the thread.
             * @example msg_01hzy8
             */
            messageId?: string;
        };
        /** AcceptedReply */
        AcceptedReply: {
            /** @example msg_01hzy8 */
            id: string;
            status: string;
            /**
             * Format: date-time
             * @description When it leaves, with `undoSeconds`.
             */
            scheduledAt?: string;
            threadId: string;
        };
        /** NewDraft */
        NewDraft: {
            /**
             * @example ana@example.com
             * @example {
             *       "email": "ana@example.com"
             *     }
             */
            from?: string | components["schemas"]["SendAddress"];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            cc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            bcc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            replyTo?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @description Required unless `templateId` is given.
             * @example Hello
             */
            subject?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /** @example Hi Ana */
            text?: string;
            /**
             * @description Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.
             * @example order-confirmation
             */
            templateId?: string;
            /**
             * @description Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
             * @example {
             *       "name": "Ana"
             *     }
             */
            data?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.
             * @example {
             *       "X-Order": "42"
             *     }
             */
            headers?: {
                [key: string]: string;
            };
            /** @description At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`. */
            tags?: {
                /** @example campaign */
                name: string;
                /** @example spring */
                value: string;
            }[];
            attachments?: components["schemas"]["SendAttachment"][];
            calendar?: components["schemas"]["SendCalendar"];
            /**
             * Format: date-time
             * @description ISO 8601 time with a zone at which to send. A past time sends now.
             * @example 2026-01-31T09:30:00Z
             */
            scheduledAt?: string;
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
            /** @description Overrides the project's tracking settings. */
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /**
             * @description `bulk` mail leaves after the rest: it has one turn in five, together with retries. If absent: `bulk` with `unsubscribeLink` or a List-Unsubscribe header, else `transactional`.
             * @example transactional
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            /** @description If false, the body, files and template data go as soon as every recipient is final. The record and its events stay. */
            keepContent?: boolean;
            /**
             * @description Id of a topic. The message has `unsubscribeLink`, its link leaves the topic, and recipients who do not get the topic when it leaves are `rejected`.
             * @example top_01hzy8
             */
            topicId?: string;
            /** @description Adds one-click unsubscribe headers (RFC 8058). Also defines `unsubscribeUrl` for placeholders in the template, subject, html and text. */
            unsubscribeLink?: boolean;
            /** @description Of a draft in a thread: also answers the other recipients. */
            replyAll?: boolean;
            /**
             * @description Of a draft in a thread: the message that it answers. If absent: the newest inbound one.
             * @example msg_01hzy8
             */
            messageId?: string;
            /**
             * @description Makes it a reply in this thread, which decides about `from` and, if absent, `to` and `subject`.
             * @example thr_01hzy8
             */
            threadId?: string;
        };
        /** Draft */
        Draft: {
            /** @description As it was written. The service checks it when the draft is sent. */
            from?: string | {
                email: string;
                name?: string;
            } | (string | {
                email: string;
                name?: string;
            })[];
            /** @description As it was written. The service checks it when the draft is sent. */
            to?: string | {
                email: string;
                name?: string;
            } | (string | {
                email: string;
                name?: string;
            })[];
            /** @description As it was written. The service checks it when the draft is sent. */
            cc?: string | {
                email: string;
                name?: string;
            } | (string | {
                email: string;
                name?: string;
            })[];
            /** @description As it was written. The service checks it when the draft is sent. */
            bcc?: string | {
                email: string;
                name?: string;
            } | (string | {
                email: string;
                name?: string;
            })[];
            /** @description As it was written. The service checks it when the draft is sent. */
            replyTo?: string | {
                email: string;
                name?: string;
            } | (string | {
                email: string;
                name?: string;
            })[];
            /**
             * @description Required unless `templateId` is given.
             * @example Hello
             */
            subject?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /** @example Hi Ana */
            text?: string;
            /**
             * @description Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.
             * @example order-confirmation
             */
            templateId?: string;
            /**
             * @description Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
             * @example {
             *       "name": "Ana"
             *     }
             */
            data?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.
             * @example {
             *       "X-Order": "42"
             *     }
             */
            headers?: {
                [key: string]: string;
            };
            /** @description At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`. */
            tags?: {
                /** @example campaign */
                name: string;
                /** @example spring */
                value: string;
            }[];
            attachments?: components["schemas"]["SendAttachment"][];
            calendar?: components["schemas"]["SendCalendar"];
            /**
             * @description As it was written. The service checks it when the draft is sent.
             * @example 2026-01-31T09:30:00.000Z
             */
            scheduledAt?: string;
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
            /** @description Overrides the project's tracking settings. */
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /**
             * @description `bulk` mail leaves after the rest: it has one turn in five, together with retries. If absent: `bulk` with `unsubscribeLink` or a List-Unsubscribe header, else `transactional`.
             * @example transactional
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            /** @description If false, the body, files and template data go as soon as every recipient is final. The record and its events stay. */
            keepContent?: boolean;
            /**
             * @description Id of a topic. The message has `unsubscribeLink`, its link leaves the topic, and recipients who do not get the topic when it leaves are `rejected`.
             * @example top_01hzy8
             */
            topicId?: string;
            /** @description Adds one-click unsubscribe headers (RFC 8058). Also defines `unsubscribeUrl` for placeholders in the template, subject, html and text. */
            unsubscribeLink?: boolean;
            /** @description Of a draft in a thread: also answers the other recipients. */
            replyAll?: boolean;
            /**
             * @description Of a draft in a thread: the message that it answers. If absent: the newest inbound one.
             * @example msg_01hzy8
             */
            messageId?: string;
            /** @example drf_01hzy8 */
            id: string;
            threadId: string | null;
            author: components["schemas"]["Author"];
            /**
             * @description Counts the changes.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** DraftSummary */
        DraftSummary: {
            /** @example drf_01hzy8 */
            id: string;
            threadId: string | null;
            author: components["schemas"]["Author"];
            /**
             * @description Counts the changes.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
            to: string[];
            /** @description Of a reply without one: that of its thread. */
            subject: string;
            /** @description First characters of the text. */
            preview: string;
        };
        /** DraftFields */
        DraftFields: {
            /**
             * @example ana@example.com
             * @example {
             *       "email": "ana@example.com"
             *     }
             */
            from?: string | components["schemas"]["SendAddress"];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            to?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            cc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            bcc?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @example ana@example.com
             * @example [
             *       "ana@example.com"
             *     ]
             */
            replyTo?: string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[];
            /**
             * @description Required unless `templateId` is given.
             * @example Hello
             */
            subject?: string;
            /** @example <p>Hi Ana</p> */
            html?: string;
            /** @example Hi Ana */
            text?: string;
            /**
             * @description Id or slug of a saved template, rendered while sending. A `subject`, `html` or `text` that is given and not empty replaces the template's.
             * @example order-confirmation
             */
            templateId?: string;
            /**
             * @description Values for the template's placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
             * @example {
             *       "name": "Ana"
             *     }
             */
            data?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Custom headers: at most 50, each with a value of at most 4096 bytes on one line. Headers that the service writes itself are refused.
             * @example {
             *       "X-Order": "42"
             *     }
             */
            headers?: {
                [key: string]: string;
            };
            /** @description At most 20. Name and value have 1 to 256 characters of `A-Z a-z 0-9 _ . -`. */
            tags?: {
                /** @example campaign */
                name: string;
                /** @example spring */
                value: string;
            }[];
            attachments?: components["schemas"]["SendAttachment"][];
            calendar?: components["schemas"]["SendCalendar"];
            /**
             * Format: date-time
             * @description ISO 8601 time with a zone at which to send. A past time sends now.
             * @example 2026-01-31T09:30:00Z
             */
            scheduledAt?: string;
            /**
             * @description Sends after so many seconds. Until then the message is `accepted`, and `POST /v1/emails/{id}/cancel` takes it back.
             * @example 10
             */
            undoSeconds?: number;
            /** @description Overrides the project's tracking settings. */
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /**
             * @description `bulk` mail leaves after the rest: it has one turn in five, together with retries. If absent: `bulk` with `unsubscribeLink` or a List-Unsubscribe header, else `transactional`.
             * @example transactional
             * @enum {string}
             */
            stream?: "transactional" | "bulk";
            /** @description If false, the body, files and template data go as soon as every recipient is final. The record and its events stay. */
            keepContent?: boolean;
            /**
             * @description Id of a topic. The message has `unsubscribeLink`, its link leaves the topic, and recipients who do not get the topic when it leaves are `rejected`.
             * @example top_01hzy8
             */
            topicId?: string;
            /** @description Adds one-click unsubscribe headers (RFC 8058). Also defines `unsubscribeUrl` for placeholders in the template, subject, html and text. */
            unsubscribeLink?: boolean;
            /** @description Of a draft in a thread: also answers the other recipients. */
            replyAll?: boolean;
            /**
             * @description Of a draft in a thread: the message that it answers. If absent: the newest inbound one.
             * @example msg_01hzy8
             */
            messageId?: string;
            /**
             * @description Of the draft that you read. If it has changed since, the answer is 409.
             * @example 1
             */
            version?: number;
        };
        /** SendDraft */
        SendDraft: {
            /**
             * @description Of the draft that you read.
             * @example 1
             */
            version?: number;
        };
        /** NewNote */
        NewNote: {
            /** @example She called about it. */
            text: string;
        };
        /**
         * ErasureCounts
         * @description Numbers so far.
         */
        ErasureCounts: {
            /** @description With their bodies, raw bytes, files, events and webhook log. */
            messages: number;
            contacts: number;
            /** @description They stay as keyed hashes, so the address stays suppressed. */
            suppressions: number;
        };
        /** Erasure */
        Erasure: {
            id: string;
            /**
             * @description `running` also while a recipient is in progress: its message goes once that is final.
             * @enum {string}
             */
            status: "running" | "done";
            counts: components["schemas"]["ErasureCounts"];
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            endedAt: string | null;
        };
        /** NewApiKey */
        NewApiKey: {
            id: string;
            name: string;
            /** @description The start of the key, which is not secret. */
            keyPrefix: string;
            last4: string;
            senderId: string | null;
            /** @description Present on a project-scoped key. */
            senderExternalId?: string;
            /**
             * @description Empty: every scope.
             * @example [
             *       "emails:send"
             *     ]
             */
            scopes: ("emails:send" | "emails:read" | "emails:approve" | "templates:read" | "templates:write" | "contacts:read" | "contacts:write" | "audience:read" | "audience:write" | "domains:read" | "domains:write" | "inboxes:read" | "inboxes:write" | "threads:read" | "threads:reply" | "drafts:write" | "suppressions:read" | "suppressions:write" | "webhooks:read" | "webhooks:write" | "api_keys:read" | "api_keys:write" | "senders:read" | "senders:write" | "metrics:read" | "audit:read" | "members:write" | "data:delete" | "data:export")[];
            allowRecipients: string[] | null;
            /** @description Whether each send waits until another key approves it. */
            approval: boolean;
            inboxIds: string[] | null;
            lastUsedAt: string | null;
            revokedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            createdBy: {
                /** @enum {string} */
                type: "member" | "key";
                id: string;
                name: string | null;
            } | null;
            /** @description Shown only in this answer. */
            secret: string;
        };
        /** ApiKey */
        ApiKey: {
            id: string;
            name: string;
            /** @description The start of the key, which is not secret. */
            keyPrefix: string;
            last4: string;
            senderId: string | null;
            /** @description Present on a project-scoped key. */
            senderExternalId?: string;
            /**
             * @description Empty: every scope.
             * @example [
             *       "emails:send"
             *     ]
             */
            scopes: ("emails:send" | "emails:read" | "emails:approve" | "templates:read" | "templates:write" | "contacts:read" | "contacts:write" | "audience:read" | "audience:write" | "domains:read" | "domains:write" | "inboxes:read" | "inboxes:write" | "threads:read" | "threads:reply" | "drafts:write" | "suppressions:read" | "suppressions:write" | "webhooks:read" | "webhooks:write" | "api_keys:read" | "api_keys:write" | "senders:read" | "senders:write" | "metrics:read" | "audit:read" | "members:write" | "data:delete" | "data:export")[];
            allowRecipients: string[] | null;
            /** @description Whether each send waits until another key approves it. */
            approval: boolean;
            inboxIds: string[] | null;
            lastUsedAt: string | null;
            revokedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            createdBy: {
                /** @enum {string} */
                type: "member" | "key";
                id: string;
                name: string | null;
            } | null;
        };
        /** AuditEntry */
        AuditEntry: {
            /** @example aud_42 */
            id: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            at: string;
            actor: {
                /**
                 * @description `service`: Postrider itself, or a link in a message. `cli`: the command line.
                 * @enum {string}
                 */
                type: "member" | "key" | "cli" | "service";
                id: string | null;
                name: string | null;
            };
            /**
             * @description Noun and verb.
             * @example domain.create
             */
            action: string;
            target: {
                /** @example domain */
                type: string;
                /** @example dom_01jv6m2k3n4p5q6r7s8t9v0w1x */
                id: string;
                name: string | null;
            };
            senderId: string | null;
            /**
             * @description The changed fields as [before, after]. A secret is `***`. A long string is cut after 1000 characters.
             * @example {}
             */
            changes: {
                [key: string]: (string | number | boolean | null | string[] | {
                    [key: string]: string | number | null;
                })[];
            };
            ip: string | null;
            requestId: string | null;
        };
        /** NewMember */
        NewMember: {
            /**
             * Format: idn-email
             * @example ana@example.com
             */
            email: string;
            /**
             * @description `owner`: everything. `developer`: everything but projects and members. `support`: messages, threads, contacts and suppressions. `viewer`: reads only.
             * @enum {string}
             */
            role: "owner" | "developer" | "support" | "viewer";
            /**
             * @description Projects that the member is limited to. Empty: all. An owner has no limit.
             * @example []
             */
            senderIds?: string[];
        };
        /** Member */
        Member: {
            id: string;
            email: string;
            /**
             * @description `owner`: everything. `developer`: everything but projects and members. `support`: messages, threads, contacts and suppressions. `viewer`: reads only.
             * @enum {string}
             */
            role: "owner" | "developer" | "support" | "viewer";
            /**
             * @description Projects that the member is limited to. Empty: all. An owner has no limit.
             * @example []
             */
            senderIds: string[];
            /**
             * @description `invited`: the member has not signed in yet. `disabled`: the member cannot sign in.
             * @enum {string}
             */
            status: "invited" | "active" | "disabled";
            invitedBy: string | null;
            lastSeenAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** MemberChanges */
        MemberChanges: {
            /**
             * @description `owner`: everything. `developer`: everything but projects and members. `support`: messages, threads, contacts and suppressions. `viewer`: reads only.
             * @enum {string}
             */
            role?: "owner" | "developer" | "support" | "viewer";
            /**
             * @description Projects that the member is limited to. Empty: all. An owner has no limit.
             * @example []
             */
            senderIds?: string[];
            /**
             * @description `disabled` ends all sessions of the member.
             * @enum {string}
             */
            status?: "active" | "disabled";
        };
        /** MemberSession */
        MemberSession: {
            id: string;
            ip: string | null;
            userAgent: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            lastUsedAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            expiresAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** Health */
        Health: {
            /** @description Version of the process that answers. */
            version: string;
            commit: string | null;
            /**
             * @description The worst of the checks'.
             * @enum {string}
             */
            status: "ok" | "warn" | "fail";
            checks: {
                name: string;
                /** @enum {string} */
                status: "ok" | "warn" | "fail";
                /** @description The result, in words for the operator. */
                message: string;
                /** @description How to fix it. */
                fix?: string;
                /** @description A POST that fixes it, once you have done the rest. */
                action?: {
                    /** @example Open the lane */
                    label: string;
                    /** @example /v1/lanes/yahoo/open */
                    path: string;
                };
            }[];
            /** @description One for each certificate that the servers use or that is ordered for a delegated domain of the account. `nextAt` is when it is renewed or tried again; null if it is not ordered automatically. */
            certificates: {
                names: string[];
                /**
                 * @description `acme`: ordered automatically. `file`: SMTP_TLS_CERT. `self-signed`: made at the start.
                 * @enum {string}
                 */
                source: "acme" | "file" | "self-signed";
                expiresAt: string | null;
                nextAt: string | null;
                lastError: {
                    message: string;
                    /**
                     * Format: date-time
                     * @description ISO 8601 time, UTC.
                     * @example 2026-01-31T09:30:00.000Z
                     */
                    at: string;
                } | null;
            }[];
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            checkedAt: string;
        };
        /** Notice */
        Notice: {
            /** @example ntc_01jv6m2k3n4p5q6r7s8t9v0w1x */
            id: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            at: string;
            /** @enum {string} */
            kind: "domain_failing" | "certificate_failing" | "project_near_suspension" | "project_suspended" | "webhook_failing" | "webhook_disabled" | "quota_near" | "volume_near" | "address_blocked" | "address_listed" | "approval_waiting" | "disk_low" | "backup_old" | "migration_failed" | "rule_disabled" | "erasure_done";
            /**
             * @description `fail`: something does not work. `warn`: something soon will not. `info`: for your information.
             * @enum {string}
             */
            level: "info" | "warn" | "fail";
            /**
             * @description Name of what it is about.
             * @example example.com
             */
            subject: string;
            /** @description What is the matter, in a sentence. */
            message: string;
            /** @description A link to what needs someone: a path in the dashboard, with the project that it opens. */
            fix: {
                label: string;
                /** @example /domains/dom_01jv6m2k3n4p5q6r7s8t9v0w1x */
                path: string;
            };
            senderId: string | null;
            seenAt: string | null;
            endedAt: string | null;
        };
        /** NoticeChanges */
        NoticeChanges: {
            /**
             * @description True once a person has seen it.
             * @example true
             */
            seen: boolean;
        };
        /** Lane */
        Lane: {
            /**
             * @description A provider (`google`, `mimecast:eu`), or the MX hosts: `mx1.example.com+mx2.example.com`; then `@` and the address of `EGRESS`, if it is set.
             * @example yahoo
             */
            name: string;
            title: string | null;
            egress: string | null;
            /**
             * @description `slowed`: below its limits. `resting`: nothing leaves until `opensAt`. `blocked`: the provider refuses our address, so messages are held.
             * @enum {string}
             */
            state: "steady" | "slowed" | "resting" | "blocked";
            /** @description Maximum number of connections now, per worker. */
            connections: number;
            rate: number | null;
            limit: number | null;
            opensAt: string | null;
            reason: string | null;
            reply: string | null;
            /** @description Recipients that wait in the memory of workers. Further ones may wait in the database. */
            waiting: number;
            /** @description Attempts since midnight UTC, by their outcome. */
            day: {
                accepted: number;
                deferred: number;
                refused: number;
            };
            /** @description Only while the address is new to the provider (`WARM_UP`). */
            warmUp?: {
                /** @description Day of the warm-up, from 1. A day with trouble repeats, and one without mail does not count. 0: it has not begun. */
                day: number;
                /** @description Maximum number of attempts today (UTC). */
                cap: number;
                /** @description Attempts today. */
                used: number;
            };
        };
        /** Setting */
        Setting: {
            name: string;
            value: string | null;
            /** @enum {string} */
            source: "environment" | "file" | "default";
            secret: boolean;
            /** @description Whether there is a value. A secret shows only this. */
            set: boolean;
            help: string;
        };
        /** Account */
        Account: {
            id: string;
            /** @description The only address that test mode delivers to. */
            ownerEmail: string;
        };
        /** Me */
        Me: {
            account: components["schemas"]["Account"];
            key: {
                id: string | null;
                name: string | null;
                /** @description Empty: every scope. */
                scopes: ("emails:send" | "emails:read" | "emails:approve" | "templates:read" | "templates:write" | "contacts:read" | "contacts:write" | "audience:read" | "audience:write" | "domains:read" | "domains:write" | "inboxes:read" | "inboxes:write" | "threads:read" | "threads:reply" | "drafts:write" | "suppressions:read" | "suppressions:write" | "webhooks:read" | "webhooks:write" | "api_keys:read" | "api_keys:write" | "senders:read" | "senders:write" | "metrics:read" | "audit:read" | "members:write" | "data:delete" | "data:export")[];
                senderId: string | null;
            };
            member: {
                id: string;
                email: string;
                /**
                 * @description `owner`: everything. `developer`: everything but projects and members. `support`: messages, threads, contacts and suppressions. `viewer`: reads only.
                 * @enum {string}
                 */
                role: "owner" | "developer" | "support" | "viewer";
                /** @description Projects that the person is limited to; the project header names one of them. Empty: all. */
                projects: {
                    id: string;
                    externalId: string;
                    name: string;
                    suspendedAt: string | null;
                }[];
            } | null;
            project: {
                id: string;
                externalId: string;
                name: string;
                /**
                 * @description Sets the request rate.
                 * @example free
                 * @example pro
                 * @example unlimited
                 */
                plan: ("free" | "pro" | "unlimited") | (string & {});
                /**
                 * @description Limits the recipients per UTC day.
                 * @example new
                 * @example basic
                 * @example trusted
                 * @example high
                 * @example unlimited
                 */
                trustTier: ("new" | "basic" | "trusted" | "high" | "unlimited") | (string & {});
                suspendedAt: string | null;
            } | null;
            service: {
                /** @description Domain of the service's own names. `onboarding.<domain>` sends without DNS, and `simulator.<domain>` takes test mail. */
                domain: string;
                /**
                 * @description How outgoing mail leaves. `capture`: it does not.
                 * @enum {string}
                 */
                delivery: "capture" | "relay" | "mx";
            };
            limits: {
                /** @description Recipients of a message. */
                maxRecipients: number;
                /** @description Octets of an encoded message. */
                maxMessageBytes: number;
                /** @description Attachments of a message. */
                maxAttachments: number;
                /** @description Days ahead that a send can be scheduled. */
                maxScheduleDays: number;
                requestsPerSecond: number | null;
                requestBurst: number | null;
                recipientsPerDay: number | null;
            };
        };
        /** AccountSettings */
        AccountSettings: {
            id: string;
            /** @description The only address that test mode delivers to. */
            ownerEmail: string;
            notices: {
                /** @description Addresses that get notices by mail. */
                to: string[];
                webhook: string | null;
                /**
                 * @description Kinds that are not sent. They are still in the list of notices.
                 * @example [
                 *       "quota_near"
                 *     ]
                 */
                off: ("domain_failing" | "certificate_failing" | "project_near_suspension" | "project_suspended" | "webhook_failing" | "webhook_disabled" | "quota_near" | "volume_near" | "address_blocked" | "address_listed" | "approval_waiting" | "disk_low" | "backup_old" | "migration_failed" | "rule_disabled" | "erasure_done")[];
                /** @description Signs the requests to the webhook. Only after its URL was changed. */
                webhookSecret?: string;
            };
        };
        /** AccountChanges */
        AccountChanges: {
            /**
             * Format: idn-email
             * @example owner@example.com
             */
            ownerEmail?: string;
            notices?: {
                to?: string[] | null;
                webhook?: string | null;
                /**
                 * @description Kinds that are not sent. They are still in the list of notices.
                 * @example [
                 *       "quota_near"
                 *     ]
                 */
                off?: ("domain_failing" | "certificate_failing" | "project_near_suspension" | "project_suspended" | "webhook_failing" | "webhook_disabled" | "quota_near" | "volume_near" | "address_blocked" | "address_listed" | "approval_waiting" | "disk_low" | "backup_old" | "migration_failed" | "rule_disabled" | "erasure_done")[];
            };
        };
        /** NewProject */
        NewProject: {
            /** @example Production */
            name: string;
            /**
             * @description Your own id for the project, unique in the account. If absent, it is derived from `name`.
             * @example customer-42
             */
            externalId?: string;
            /**
             * @description Sets the request rate.
             * @example free
             * @example pro
             * @example unlimited
             */
            plan?: ("free" | "pro" | "unlimited") | (string & {});
            /**
             * @description Limits the recipients per UTC day.
             * @example new
             * @example basic
             * @example trusted
             * @example high
             * @example unlimited
             */
            trustTier?: ("new" | "basic" | "trusted" | "high" | "unlimited") | (string & {});
            dailyQuota?: number | null;
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /** @description Whether a message that has html alone gets a text part made from it. */
            textFromHtml?: boolean;
            /**
             * @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: the default route.
             * @example [
             *       "default"
             *     ]
             */
            routeIds?: string[];
            retention?: {
                contentDays?: number | null;
                eventDays?: number | null;
            };
            spamCheckFail?: ("accept" | "defer") | null;
            postalAddress?: string | null;
        };
        /** Sender */
        Sender: {
            id: string;
            externalId: string;
            name: string;
            /**
             * @description Sets the request rate.
             * @example free
             * @example pro
             * @example unlimited
             */
            plan: ("free" | "pro" | "unlimited") | (string & {});
            /**
             * @description Limits the recipients per UTC day.
             * @example new
             * @example basic
             * @example trusted
             * @example high
             * @example unlimited
             */
            trustTier: ("new" | "basic" | "trusted" | "high" | "unlimited") | (string & {});
            dailyQuota: number | null;
            tracking: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens: boolean | "auto";
                clicks: boolean;
            };
            /** @description Whether a message that has html alone gets a text part made from it. */
            textFromHtml: boolean;
            /** @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: the default route. */
            routeIds: string[];
            retention: {
                contentDays: number | null;
                eventDays: number | null;
            };
            spamCheckFail: ("accept" | "defer") | null;
            postalAddress: string | null;
            suspendedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** ProjectChanges */
        ProjectChanges: {
            /** @example Production */
            name?: string;
            /** @example customer-42 */
            externalId?: string;
            /**
             * @description Sets the request rate.
             * @example free
             * @example pro
             * @example unlimited
             */
            plan?: ("free" | "pro" | "unlimited") | (string & {});
            /**
             * @description Limits the recipients per UTC day.
             * @example new
             * @example basic
             * @example trusted
             * @example high
             * @example unlimited
             */
            trustTier?: ("new" | "basic" | "trusted" | "high" | "unlimited") | (string & {});
            dailyQuota?: number | null;
            tracking?: {
                /**
                 * @description `auto`: opens are tracked only if the html has at least 3200 characters of text, because filters distrust a picture next to less.
                 * @example true
                 */
                opens?: boolean | "auto";
                clicks?: boolean;
            };
            /** @description Whether a message that has html alone gets a text part made from it. */
            textFromHtml?: boolean;
            /**
             * @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: the default route.
             * @example [
             *       "default"
             *     ]
             */
            routeIds?: string[];
            retention?: {
                contentDays?: number | null;
                eventDays?: number | null;
            };
            spamCheckFail?: ("accept" | "defer") | null;
            postalAddress?: string | null;
            suspendedAt?: string | null;
        };
        /**
         * NewRouteWarmUp
         * @description It begins on the day on which it is set. A new target does not begin it again. Null: none.
         */
        NewRouteWarmUp: {
            /**
             * @description Messages a day to which it grows, in the steps of `WARM_UP`: through the relay, or for kind `mx` to each provider from each address.
             * @example 20000
             */
            targetPerDay: number;
            overflowRouteId?: string | null;
        };
        /**
         * NewRouteEvents
         * @description Takes the events of the relay's provider. For kind `relay`. The key, topic or secret that proves them is stored sealed.
         * @example {
         *       "provider": "postmark"
         *     }
         */
        NewRouteEvents: {
            /**
             * @description The provider of the relay.
             * @enum {string}
             */
            provider: "ses" | "postmark" | "mailgun" | "sendgrid";
            /**
             * @description For `ses`: the SNS topic that SES publishes to. No other topic is listened to.
             * @example arn:aws:sns:eu-west-1:123456789012:mail
             */
            topicArn?: string;
            /**
             * @description For `postmark`: a secret in the URL. If absent, one is made.
             * @example kT3vQ9mZr1xWc8bN5yLd2pGh
             */
            secret?: string;
            /**
             * @description For `mailgun`: the HTTP webhook signing key of the account.
             * @example 3a1f0c9b7d5e4f2a8c6b1d0e9f7a5c3b
             */
            signingKey?: string;
            /**
             * @description For `sendgrid`: the verification key of the signed event webhook.
             * @example MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…
             */
            publicKey?: string;
        };
        /** RouteWarmUp */
        RouteWarmUp: {
            targetPerDay: number;
            overflowRouteId: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            startedAt: string;
        };
        /**
         * RouteEvents
         * @description Where the provider of the relay posts what became of mail: its deliveries, bounces, complaints and delays become events of the messages.
         */
        RouteEvents: {
            /**
             * @description The provider of the relay.
             * @enum {string}
             */
            provider: "ses" | "postmark" | "mailgun" | "sendgrid";
            /**
             * @description URL to enter at the provider. For `postmark` it has a secret, which only the answer that sets it shows.
             * @example https://mail.example.com/v1/routes/rte_01jxsh8k2v0000000000000000/events/ses
             */
            url: string;
        };
        /** Route */
        Route: {
            /** @description `default` for the route that the settings make. */
            id: string;
            name: string;
            /**
             * @description `mx`: straight to the recipients' mail servers. `relay`: through a smarthost. `capture`: mail stays on this machine. Only the default route has this kind.
             * @enum {string}
             */
            kind: "mx" | "relay" | "capture";
            relayHost: string | null;
            pool: string | null;
            ratePerSecond: number | null;
            warmUp: components["schemas"]["RouteWarmUp"] | null;
            events: components["schemas"]["RouteEvents"] | null;
            createdAt: string | null;
        };
        /** DelegationRecord */
        DelegationRecord: {
            /** @constant */
            type: "NS";
            /** @description DNS name to publish at, in the zone above the domain. */
            name: string;
            value: string;
        };
        /**
         * Delegation
         * @description Present if the service's name server holds the domain's zone.
         */
        Delegation: {
            /**
             * @description `active`: the last check found the NS record, and every record of the domain counts as published. `failing`: it was found before.
             * @enum {string}
             */
            status: "pending" | "active" | "failing";
            records: components["schemas"]["DelegationRecord"][];
        };
        /** DnsRecord */
        DnsRecord: {
            /** @enum {string} */
            type: "CNAME" | "TXT" | "MX";
            /** @description DNS name to publish at. */
            name: string;
            value: string;
            /** @description Present on MX records. */
            priority?: number;
            /** @enum {string} */
            purpose: "dkim" | "spf" | "dmarc" | "inbound" | "return_path" | "links";
            /** @description False until the record resolves. */
            verified: boolean;
        };
        /** Domain */
        Domain: {
            id: string;
            domain: string;
            /** @enum {string} */
            status: "pending" | "verified";
            verifiedBy: ("dns" | "capture") | null;
            authHealth: {
                /** @enum {string} */
                dkim: "verified" | "pending" | "failing";
                /** @enum {string} */
                spf: "verified" | "pending" | "failing";
                /** @enum {string} */
                dmarc: "verified" | "pending" | "failing";
            };
            receiving: boolean;
            /** @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the project. */
            routeIds: string[];
            delegation?: components["schemas"]["Delegation"];
            /**
             * @description Of delegated domains alone. `manual`: the zone publishes `p=none`. `auto`: the policy becomes `quarantine` and then `reject` when reports show that this is safe, and `none` at once when they show that mail of yours fails.
             * @enum {string}
             */
            dmarc?: "manual" | "auto";
            /** @description Of delegated domains alone. If true, every name below the domain that has no records receives mail too, without a change of DNS: inboxes may be at `support@any.example.com` and `*@any.example.com`. Mail from there is signed by the domain. Turning it off while there are such inboxes is 409. */
            wildcard?: boolean;
            verifiedAt: string | null;
            checkedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            records: components["schemas"]["DnsRecord"][];
            /** @description Records that improve how mail is received. Sending does not wait for them. `return_path`: bounces return to the domain itself, so that SPF passes aligned with From. `links`: tracked links and unsubscribe links lead to `links.` of the domain, which has its own certificate. Only if the service has hosts for domains, and needs both records. */
            recommended: components["schemas"]["DnsRecord"][];
        };
        /** CheckedDnsRecord */
        CheckedDnsRecord: {
            /** @enum {string} */
            type: "CNAME" | "TXT" | "MX";
            /** @description DNS name to publish at. */
            name: string;
            value: string;
            /** @description Present on MX records. */
            priority?: number;
            /** @enum {string} */
            purpose: "dkim" | "spf" | "dmarc" | "inbound" | "return_path" | "links";
            /** @description False until the record resolves. */
            verified: boolean;
            /**
             * @description `spreading`: not at every name server, or not in every cache yet. `unknown`: the DNS did not answer.
             * @enum {string}
             */
            status: "verified" | "missing" | "wrong" | "spreading" | "unknown";
            /** @description The values in the DNS now, at most 10. */
            found: string[];
            problem: string | null;
            fix: string | null;
        };
        /** SpfEvaluation */
        SpfEvaluation: {
            /**
             * @description What receivers find for mail from our addresses (RFC 7208 §2.6), the worst of them.
             * @enum {string}
             */
            result: "pass" | "neutral" | "softfail" | "fail" | "none" | "temperror" | "permerror";
            /** @description DNS lookups that the record needs. Receivers stop after 10. */
            lookups: number;
            /** @description Those without a result. Receivers stop after 2. */
            voidLookups: number;
            problem: string | null;
            fix: string | null;
        };
        /** CheckedDomain */
        CheckedDomain: {
            id: string;
            domain: string;
            /** @enum {string} */
            status: "pending" | "verified";
            verifiedBy: ("dns" | "capture") | null;
            authHealth: {
                /** @enum {string} */
                dkim: "verified" | "pending" | "failing";
                /** @enum {string} */
                spf: "verified" | "pending" | "failing";
                /** @enum {string} */
                dmarc: "verified" | "pending" | "failing";
            };
            receiving: boolean;
            /** @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the project. */
            routeIds: string[];
            delegation?: components["schemas"]["Delegation"];
            /**
             * @description Of delegated domains alone. `manual`: the zone publishes `p=none`. `auto`: the policy becomes `quarantine` and then `reject` when reports show that this is safe, and `none` at once when they show that mail of yours fails.
             * @enum {string}
             */
            dmarc?: "manual" | "auto";
            /** @description Of delegated domains alone. If true, every name below the domain that has no records receives mail too, without a change of DNS: inboxes may be at `support@any.example.com` and `*@any.example.com`. Mail from there is signed by the domain. Turning it off while there are such inboxes is 409. */
            wildcard?: boolean;
            verifiedAt: string | null;
            checkedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            records: components["schemas"]["CheckedDnsRecord"][];
            /** @description Records that improve how mail is received. Sending does not wait for them. `return_path`: bounces return to the domain itself, so that SPF passes aligned with From. `links`: tracked links and unsubscribe links lead to `links.` of the domain, which has its own certificate. Only if the service has hosts for domains, and needs both records. */
            recommended: components["schemas"]["CheckedDnsRecord"][];
            spf: components["schemas"]["SpfEvaluation"];
            /** @description What some receivers refuse or mind, each with its fix. Examples: a domain without MX and address, DMARC without reports, a signed test message that does not pass. */
            warnings: string[];
        };
        /** Receiving */
        Receiving: {
            enabled: boolean;
            records: components["schemas"]["DnsRecord"][];
        };
        /** DomainRecord */
        DomainRecord: {
            id: string;
            /** @enum {string} */
            type: "A" | "AAAA" | "CNAME" | "TXT" | "MX" | "CAA";
            /** @example www.mail.example.com */
            name: string;
            /** @example 192.0.2.1 */
            value: string;
            /**
             * @description Seconds for which resolvers keep the record. 3600 if left out.
             * @example 3600
             */
            ttl: number;
            /** @description Of MX records alone: the host with the lowest is tried first. 10 if left out. */
            priority?: number;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** ReportRow */
        ReportRow: {
            id: string;
            /** @enum {string} */
            kind: "dmarc" | "tls";
            /**
             * @description UTC day.
             * @example 2026-01-31
             */
            day: string;
            /**
             * @description The domain that is proven to have sent the reports, else the name that they give.
             * @example google.com
             */
            reporter: string;
            /** @description True if the policy advice counts the reports: SPF or DKIM proves that one of DMARC_REPORTERS sent them. */
            counts: boolean;
            /**
             * @description DMARC: the address that sent the messages. TLS: the host that received, or empty. `other`: what exceeds the sources of a day.
             * @example 192.0.2.1
             */
            source: string;
            /**
             * @description DMARC: what passed aligned with From, `dkim_and_spf`, `dkim`, `spf`, or `fail`. TLS: `success`, or a type of RFC 8460 §4.3.
             * @example dkim_and_spf
             */
            result: string;
            disposition: ("none" | "quarantine" | "reject") | null;
            /** @description Messages, or sessions for TLS. */
            messages: number;
        };
        /** PolicyAdvice */
        PolicyAdvice: {
            now: ("none" | "quarantine" | "reject") | null;
            /**
             * @description The strictest policy that the reports show to be safe.
             * @enum {string}
             */
            safe: "none" | "quarantine" | "reject";
            since: string | null;
            /** @description What the reports show, and what is missing, in words. */
            reasons: string[];
            /** @description Addresses whose messages mostly fail: forgers, or services that you forgot. At most 20. */
            unknownSources: {
                /** @example 198.51.100.7 */
                source: string;
                messages: number;
            }[];
            /** @description The latest moves of a domain with `"dmarc": "auto"`, newest first. At most 20. */
            moves: {
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                at: string;
                /** @enum {string} */
                from: "none" | "quarantine" | "reject";
                /** @enum {string} */
                to: "none" | "quarantine" | "reject";
                reason: string;
            }[];
        };
        /** Inbox */
        Inbox: {
            id: string;
            senderId: string;
            domainId: string;
            address: string;
            displayName: string;
            /** @enum {string} */
            type: "sending" | "agent";
            /**
             * @description Whose mail the inbox takes; that of others, and of blocked senders, gets 550 and is recorded as `inbound_rejected`. `authenticated`: DMARC proves the author. `allowed`: the author is proven and on an allow list.
             * @enum {string}
             */
            accept: "anyone" | "authenticated" | "allowed";
            /**
             * @description Text that the dashboard puts below a message.
             * @example Ana, Acme support
             */
            signature: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** NewListedSender */
        NewListedSender: {
            /**
             * @description An address, or `@` and a domain, which means that very domain. An address decides before its domain.
             * @example @example.com
             */
            pattern: string;
            /**
             * @description `allow`: its authenticated mail has the trust `allowed`. `block`: its mail is refused.
             * @enum {string}
             */
            list: "allow" | "block";
        };
        /** ListedSender */
        ListedSender: {
            id: string;
            inboxId: string | null;
            pattern: string;
            /**
             * @description `allow`: its authenticated mail has the trust `allowed`. `block`: its mail is refused.
             * @enum {string}
             */
            list: "allow" | "block";
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /**
         * RuleConditions
         * @description All must hold; none: every message. A string matches anywhere in the value, or at its end if it begins with `*`. Case does not count.
         * @example {
         *       "header": {
         *         "name": "List-Id"
         *       }
         *     }
         */
        RuleConditions: {
            /**
             * @description The address in From.
             * @example *@example.com
             */
            from?: string;
            /**
             * @description An address in To or Cc, or a recipient of the SMTP transaction.
             * @example sales@
             */
            to?: string;
            /**
             * @description The subject.
             * @example invoice
             */
            subject?: string;
            /** @description The first field of that name. */
            header?: {
                /** @example List-Id */
                name: string;
                /**
                 * @description If left out, the field only has to be there.
                 * @example news.example.com
                 */
                value?: string;
            };
            hasAttachment?: boolean;
            /** @description Bytes. */
            largerThan?: number;
            /**
             * @description `pass`: DMARC proves the author. `fail`: it does not.
             * @enum {string}
             */
            auth?: "pass" | "fail";
            /**
             * @description `sender.trust` of the record. Mail of blocked senders meets no rules.
             * @enum {string}
             */
            trust?: "blocked" | "unauthenticated" | "authenticated" | "known" | "allowed";
            /**
             * @description A message without a verdict of the spam filter does not match.
             * @example 8
             */
            spamScoreAbove?: number;
        };
        /**
         * RuleActions
         * @description At least one. `reject` and `drop` skip all later rules.
         * @example {
         *       "archive": true
         *     }
         */
        RuleActions: {
            /** @description Labels that the conversation gets in addition. */
            labels?: string[];
            /**
             * @description The member who gets the conversation, unless it has one.
             * @example mem_01hzy8
             */
            assigneeId?: string;
            /**
             * @description `inbox` keeps the conversation out of spam, whatever the spam filter says. `spam` and `trash` keep it for 30 days.
             * @enum {string}
             */
            folder?: "inbox" | "spam" | "trash";
            /**
             * @description Id or slug of the template that answers the message; its data has `from` and `subject`. Each author gets one reply a day from the rule. Mail of unproven authors, lists and programs gets none.
             * @example out-of-office
             */
            replyTemplateId?: string;
            /**
             * @description The confirmed address (`/v1/forward-addresses`) that gets the message as it came. Spam, bounces and answers of programs are not forwarded.
             * @example ana@example.com
             */
            forwardTo?: string;
            /** @description Archives the conversation. */
            archive?: boolean;
            /** @description Marks the conversation as read. */
            markRead?: boolean;
            /**
             * @description Refuses the message with 550 5.7.1 and this text. Only its header is kept.
             * @example No advertising, please
             */
            reject?: string;
            /** @description Accepts the message, and keeps only its header, as `inbound_rejected`. */
            drop?: boolean;
            /** @description Skips all later rules. */
            stop?: boolean;
        };
        /** NewRule */
        NewRule: {
            inboxId?: string | null;
            /** @description Rules apply in ascending order. A new rule without one is the last. */
            position?: number;
            /** @example Newsletters */
            name: string;
            enabled?: boolean;
            when: components["schemas"]["RuleConditions"];
            then: components["schemas"]["RuleActions"];
        };
        /** Rule */
        Rule: {
            id: string;
            inboxId: string | null;
            /** @description Rules apply in ascending order. A new rule without one is the last. */
            position: number;
            /** @example Newsletters */
            name: string;
            enabled: boolean;
            when: components["schemas"]["RuleConditions"];
            then: components["schemas"]["RuleActions"];
            disabledReason: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** RuleChanges */
        RuleChanges: {
            inboxId?: string | null;
            /** @description Rules apply in ascending order. A new rule without one is the last. */
            position?: number;
            /** @example Newsletters */
            name?: string;
            enabled?: boolean;
            when?: components["schemas"]["RuleConditions"];
            then?: components["schemas"]["RuleActions"];
        };
        /** TryRules */
        TryRules: {
            /**
             * @description Id of a received message.
             * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
             */
            emailId: string;
        };
        /** RuleTrial */
        RuleTrial: {
            emailId: string;
            /** @description The enabled rules of the message's inbox in order, up to the one that ends them. */
            rules: {
                id: string;
                /** @example Newsletters */
                name: string;
                matched: boolean;
                /** @description In the order of their checks, up to the first that is not met. */
                conditions: {
                    /** @example from */
                    condition: string;
                    met: boolean;
                }[];
            }[];
            outcome: {
                labels: string[];
                assigneeId: string | null;
                folder: ("inbox" | "spam" | "trash") | null;
                archive: boolean;
                markRead: boolean;
                reply: {
                    /** @example rul_01hzy8 */
                    ruleId: string;
                    /** @example out-of-office */
                    templateId: string;
                    reason: string | null;
                } | null;
                /** @description The forwards, each to another address. */
                forwards: {
                    /** @example rul_01hzy8 */
                    ruleId: string;
                    /** @example ana@example.com */
                    to: string;
                    reason: string | null;
                }[];
                reject: string | null;
                drop: boolean;
            };
        };
        /** NewForwardAddress */
        NewForwardAddress: {
            /**
             * Format: idn-email
             * @example ana@example.com
             */
            email: string;
        };
        /** ForwardAddress */
        ForwardAddress: {
            id: string;
            /**
             * Format: idn-email
             * @example ana@example.com
             */
            email: string;
            /**
             * @description `pending`: its owner has not confirmed it, and nothing is forwarded.
             * @enum {string}
             */
            status: "pending" | "confirmed";
            /** @description When the mailed link stops working. Null: the address is confirmed. */
            linkEndsAt: string | null;
            confirmedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** Template */
        Template: {
            id: string;
            slug: string;
            name: string;
            subject: string;
            html: string | null;
            text: string | null;
            /** @description Full paths, in order of first use. */
            variables: string[];
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** RenderedTemplate */
        RenderedTemplate: {
            subject: string;
            html: string | null;
            text: string | null;
            /** @description Variables that `data` lacks. They render as empty strings. */
            missing: string[];
        };
        /**
         * GivenConsent
         * @description The proof of `subscribed`, which an update must have too. It becomes an entry of `consent`.
         * @example {
         *       "how": "sign-up form"
         *     }
         */
        GivenConsent: {
            /**
             * Format: date-time
             * @description When. Default: now.
             * @example 2026-01-31T09:30:00Z
             */
            at?: string;
            /**
             * @description In your words. Default: `api`.
             * @example sign-up form
             */
            how?: string;
            /**
             * @description The address from which the person acted.
             * @example 203.0.113.7
             */
            ip?: string;
        };
        /** NewContact */
        NewContact: {
            /**
             * Format: idn-email
             * @example ana@example.com
             */
            email: string;
            firstName?: string | null;
            lastName?: string | null;
            /**
             * @description Your own fields: at most 50 keys and 16384 bytes of JSON, nested 10 deep. Whole numbers beyond 2^53 are refused. Send them as strings.
             * @example {
             *       "customerId": "42"
             *     }
             */
            metadata?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Values of properties that /v1/contact-properties defines. Properties that are absent stay as they are. Null removes a value.
             * @example {}
             */
            properties?: {
                [key: string]: string | number | boolean | null;
            };
            /**
             * @description Choices by the id of their topic. Topics that are absent stay as they are. A topic with `doubleOptIn` is `pending` until the person uses the link that is mailed then.
             * @example {}
             */
            topics?: {
                [key: string]: "unsubscribed" | "subscribed";
            };
            /** @default true */
            subscribed?: boolean;
            consent?: components["schemas"]["GivenConsent"];
        };
        /** Consent */
        Consent: {
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            at: string;
            /** @description Whether the person was subscribed afterwards. */
            subscribed: boolean;
            /**
             * @description `api`, `page` and `one_click` of an unsubscribe link, `double_opt_in` of a mailed link, `mail` to the address of List-Unsubscribe, or your words.
             * @example api
             */
            how: string;
            /** @example 203.0.113.7 */
            ip?: string;
            /** @description The topic, if it is not the subscription as a whole. */
            topicId?: string;
        };
        /** Contact */
        Contact: {
            id: string;
            email: string;
            firstName: string | null;
            lastName: string | null;
            subscribed: boolean;
            unsubscribedAt: string | null;
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Values of the properties that /v1/contact-properties defines. One without a value is absent.
             * @example {}
             */
            properties: {
                [key: string]: string | number | boolean;
            };
            /**
             * @description What the contact has chosen, by the id of the topic. `pending`: the person has not used the mailed link, and gets nothing. For other topics, `defaultSubscribed` counts.
             * @example {}
             */
            topics: {
                [key: string]: "unsubscribed" | "subscribed" | "pending";
            };
            /**
             * @description How the person joined and left, oldest first: the first entry and the last 29.
             * @example [
             *       {
             *         "at": "2026-01-31T09:30:00.000Z",
             *         "subscribed": true,
             *         "how": "api"
             *       }
             *     ]
             */
            consent: components["schemas"]["Consent"][];
            lastSentAt: string | null;
            lastOpenedAt: string | null;
            lastClickedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /**
         * ContactChanges
         * @description Null clears a name. `metadata` replaces all keys, `properties` and `topics` only those that they have.
         */
        ContactChanges: {
            firstName?: string | null;
            lastName?: string | null;
            /**
             * @description Your own fields: at most 50 keys and 16384 bytes of JSON, nested 10 deep. Whole numbers beyond 2^53 are refused. Send them as strings.
             * @example {
             *       "customerId": "42"
             *     }
             */
            metadata?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * @description Values of properties that /v1/contact-properties defines. Properties that are absent stay as they are. Null removes a value.
             * @example {}
             */
            properties?: {
                [key: string]: string | number | boolean | null;
            };
            /**
             * @description Choices by the id of their topic. Topics that are absent stay as they are. A topic with `doubleOptIn` is `pending` until the person uses the link that is mailed then.
             * @example {}
             */
            topics?: {
                [key: string]: "unsubscribed" | "subscribed";
            };
            subscribed?: boolean;
            consent?: components["schemas"]["GivenConsent"];
        };
        /** ContactBatch */
        ContactBatch: {
            /**
             * @example [
             *       {
             *         "email": "ana@example.com",
             *         "firstName": "Ana"
             *       }
             *     ]
             */
            contacts: components["schemas"]["NewContact"][];
        };
        /** SavedContact */
        SavedContact: {
            /** @description Present if the contact was saved. */
            id?: string;
            email?: string;
            /**
             * @description A key without `contacts:read` gets `updated` for `unchanged`.
             * @enum {string}
             */
            result?: "created" | "updated" | "unchanged";
            error?: components["schemas"]["ItemError"];
        };
        /** NewContactProperty */
        NewContactProperty: {
            /**
             * @description It never changes.
             * @example plan
             */
            name: string;
            /**
             * @description `date`: an ISO 8601 day or date-time with a zone, shown as a date-time in UTC. It never changes.
             * @enum {string}
             */
            type: "string" | "number" | "boolean" | "date";
            fallback?: (string | number | boolean) | null;
        };
        /** ContactProperty */
        ContactProperty: {
            id: string;
            /** @example plan */
            name: string;
            /**
             * @description `date`: an ISO 8601 day or date-time with a zone, shown as a date-time in UTC. It never changes.
             * @enum {string}
             */
            type: "string" | "number" | "boolean" | "date";
            fallback: (string | number | boolean) | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /**
         * ContactPropertyChanges
         * @example {
         *       "fallback": null
         *     }
         */
        ContactPropertyChanges: {
            fallback: (string | number | boolean) | null;
        };
        /** NewTopic */
        NewTopic: {
            /**
             * @description As readers see it.
             * @example Product news
             */
            name: string;
            /**
             * @description As readers see it below the name.
             * @example Once a month
             */
            description?: string;
            /**
             * @description Whether addresses get it that have not chosen. Default: true, unless `doubleOptIn` is.
             * @default true
             */
            defaultSubscribed?: boolean;
            /**
             * @description Whether the page of unsubscribe links shows it. Default: true.
             * @default true
             */
            visible?: boolean;
            /**
             * @description Whether people join it only by a mailed link. Then `defaultSubscribed` is false. Contacts that have joined before stay. Default: false.
             * @default false
             */
            doubleOptIn?: boolean;
        };
        /** Topic */
        Topic: {
            id: string;
            /**
             * @description As readers see it.
             * @example Product news
             */
            name: string;
            /** @example Once a month */
            description: string;
            defaultSubscribed: boolean;
            visible: boolean;
            doubleOptIn: boolean;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** TopicChanges */
        TopicChanges: {
            /**
             * @description As readers see it.
             * @example Product news
             */
            name?: string;
            /**
             * @description As readers see it below the name.
             * @example Once a month
             */
            description?: string;
            /**
             * @description Whether addresses get it that have not chosen. Default: true, unless `doubleOptIn` is.
             * @default true
             */
            defaultSubscribed?: boolean;
            /**
             * @description Whether the page of unsubscribe links shows it. Default: true.
             * @default true
             */
            visible?: boolean;
            /**
             * @description Whether people join it only by a mailed link. Then `defaultSubscribed` is false. Contacts that have joined before stay. Default: false.
             * @default false
             */
            doubleOptIn?: boolean;
        };
        /** NewSegment */
        NewSegment: {
            /** @example Pro customers */
            name: string;
            /**
             * @description `all`, `any` or `not` (none) of a list of filters, or a condition `{property | topic | field, op, value}`. It is on a property by name, a topic by id, or a field of the contact (`email`, `subscribed`, `createdAt`, `lastSentAt`, `lastOpenedAt`, `lastClickedAt`). All but the times have the operators `eq` `ne`. Properties, and times that may be missing, have `set` `unset`. Strings have `contains` `startsWith` `endsWith`, numbers and dates `gt` `gte` `lt` `lte`, and dates `withinDays` `olderThanDays`. A topic is `subscribed` if the contact gets it. A contact without a value is `ne` to every value, and passes no other comparison. At most 5 levels and 50 conditions.
             * @example {
             *       "field": "subscribed",
             *       "op": "eq",
             *       "value": true
             *     }
             */
            filter: {
                [key: string]: components["schemas"]["JsonValue"];
            };
        };
        /** Segment */
        Segment: {
            id: string;
            /** @example Pro customers */
            name: string;
            /**
             * @description `all`, `any` or `not` (none) of a list of filters, or a condition `{property | topic | field, op, value}`. It is on a property by name, a topic by id, or a field of the contact (`email`, `subscribed`, `createdAt`, `lastSentAt`, `lastOpenedAt`, `lastClickedAt`). All but the times have the operators `eq` `ne`. Properties, and times that may be missing, have `set` `unset`. Strings have `contains` `startsWith` `endsWith`, numbers and dates `gt` `gte` `lt` `lte`, and dates `withinDays` `olderThanDays`. A topic is `subscribed` if the contact gets it. A contact without a value is `ne` to every value, and passes no other comparison. At most 5 levels and 50 conditions.
             * @example {
             *       "field": "subscribed",
             *       "op": "eq",
             *       "value": true
             *     }
             */
            filter: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** CountSegment */
        CountSegment: {
            /**
             * @description `all`, `any` or `not` (none) of a list of filters, or a condition `{property | topic | field, op, value}`. It is on a property by name, a topic by id, or a field of the contact (`email`, `subscribed`, `createdAt`, `lastSentAt`, `lastOpenedAt`, `lastClickedAt`). All but the times have the operators `eq` `ne`. Properties, and times that may be missing, have `set` `unset`. Strings have `contains` `startsWith` `endsWith`, numbers and dates `gt` `gte` `lt` `lte`, and dates `withinDays` `olderThanDays`. A topic is `subscribed` if the contact gets it. A contact without a value is `ne` to every value, and passes no other comparison. At most 5 levels and 50 conditions.
             * @example {
             *       "field": "subscribed",
             *       "op": "eq",
             *       "value": true
             *     }
             */
            filter: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @description Counts all contacts, however long it takes. Default: false. */
            exact?: boolean;
        };
        /** SegmentCount */
        SegmentCount: {
            /** @description Contacts that pass the filter now. */
            count: number;
            /** @description Whether `count` was extrapolated from an even part of the contacts. */
            estimated: boolean;
            /** @description Those of the counted who were added last, at most 10. Empty if the key lacks `contacts:read`. */
            sample: {
                id: string;
                email: string;
            }[];
        };
        /** SegmentChanges */
        SegmentChanges: {
            /** @example Pro customers */
            name?: string;
            /**
             * @description `all`, `any` or `not` (none) of a list of filters, or a condition `{property | topic | field, op, value}`. It is on a property by name, a topic by id, or a field of the contact (`email`, `subscribed`, `createdAt`, `lastSentAt`, `lastOpenedAt`, `lastClickedAt`). All but the times have the operators `eq` `ne`. Properties, and times that may be missing, have `set` `unset`. Strings have `contains` `startsWith` `endsWith`, numbers and dates `gt` `gte` `lt` `lte`, and dates `withinDays` `olderThanDays`. A topic is `subscribed` if the contact gets it. A contact without a value is `ne` to every value, and passes no other comparison. At most 5 levels and 50 conditions.
             * @example {
             *       "field": "subscribed",
             *       "op": "eq",
             *       "value": true
             *     }
             */
            filter?: {
                [key: string]: components["schemas"]["JsonValue"];
            };
        };
        /**
         * NewBroadcastTest
         * @description Tests a second subject. If absent or null: all get the same subject.
         */
        NewBroadcastTest: {
            /**
             * @description Subject B, in Liquid too. Subject A is that of the broadcast.
             * @example Your news of May
             */
            subject: string;
            /**
             * @description Share of the contacts that get the test, chosen by chance: half of them get A, half B. With 1, all get the test, and nothing is decided. Default: 0.2.
             * @example 0.2
             */
            share?: number;
            /**
             * @description Minutes from the last message of the test to the decision. Default: 240.
             * @example 240
             */
            waitMinutes?: number;
            /**
             * @description What decides: the share of the delivered messages that people opened, or clicked. Default: `opens`.
             * @enum {string}
             */
            by?: "opens" | "clicks";
        };
        /** NewBroadcast */
        NewBroadcast: {
            /** @example May letter */
            name: string;
            /**
             * @description The topic that readers leave by its unsubscribe link.
             * @example top_01hzy8
             */
            topicId: string;
            segmentId?: string | null;
            /**
             * @example ana@example.com
             * @example {
             *       "email": "ana@example.com"
             *     }
             */
            from: string | components["schemas"]["SendAddress"];
            replyTo?: (string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[]) | null;
            subject?: string | null;
            templateId?: string | null;
            html?: string | null;
            text?: string | null;
            scheduledAt?: string | null;
            ratePerHour?: number | null;
            /**
             * @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the From domain or the project. Requires an account-wide key.
             * @example [
             *       "default"
             *     ]
             */
            routeIds?: string[];
            abTest?: components["schemas"]["NewBroadcastTest"] | null;
        };
        /** BroadcastDecision */
        BroadcastDecision: {
            /**
             * @description The subject that the other contacts get. If `undecided`, they get A.
             * @enum {string}
             */
            winner: "a" | "b" | "undecided";
            /** @example A was opened by 24.0 % ± 2.0, B by 31.0 % ± 2.1. The difference is beyond the margin of error (95 %). */
            why: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            at: string;
        };
        /**
         * BroadcastTest
         * @description A test of two subjects. `decideAt` is known once the last message of the test was tried. The better subject then goes to the other contacts if the difference is beyond the margin of error.
         */
        BroadcastTest: {
            /**
             * @description Subject B, in Liquid too. Subject A is that of the broadcast.
             * @example Your news of May
             */
            subject: string;
            /**
             * @description Share of the contacts that get the test, chosen by chance: half of them get A, half B. With 1, all get the test, and nothing is decided. Default: 0.2.
             * @example 0.2
             */
            share: number;
            /**
             * @description Minutes from the last message of the test to the decision. Default: 240.
             * @example 240
             */
            waitMinutes: number;
            /**
             * @description What decides: the share of the delivered messages that people opened, or clicked. Default: `opens`.
             * @enum {string}
             */
            by: "opens" | "clicks";
            decideAt: string | null;
            decision: components["schemas"]["BroadcastDecision"] | null;
        };
        /** BroadcastCounts */
        BroadcastCounts: {
            audience: number | null;
            /** @description Contacts for whom a message was made. */
            recipients: number;
            /** @description Contacts left out: suppressed, unsubscribed, without the topic, or with a value that makes the subject too long. */
            skipped: number;
            /** @description Messages that a relay took, if it does not report deliveries. */
            sent: number;
            delivered: number;
            bounced: number;
            complained: number;
            /** @description Messages that were not sent, also because the person left after they were made. */
            failed: number;
            /** @description Recipients who opened it, without machines. */
            opened: number;
            /** @description Recipients who clicked, without machines. */
            clicked: number;
            /** @description Recipients who left by its link. */
            unsubscribed: number;
        };
        /**
         * BroadcastProblem
         * @description Why it waits, such as for the next day's quota, or why it was paused. Resume it once that is solved.
         */
        BroadcastProblem: {
            /** @example daily_quota_exceeded */
            code: string;
            message: string;
        };
        /** Broadcast */
        Broadcast: {
            id: string;
            /** @example May letter */
            name: string;
            /**
             * @description `sending` until each of its messages was tried once. While it is `paused`, its messages wait.
             * @enum {string}
             */
            status: "draft" | "scheduled" | "sending" | "paused" | "sent" | "canceled";
            topicId: string;
            segmentId: string | null;
            from: components["schemas"]["MailAddress"];
            replyTo: components["schemas"]["MailAddress"][];
            subject: string | null;
            templateId: string | null;
            scheduledAt: string | null;
            ratePerHour: number | null;
            /** @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the From domain or the project. */
            routeIds: string[];
            abTest: components["schemas"]["BroadcastTest"] | null;
            counts: components["schemas"]["BroadcastCounts"];
            problem: components["schemas"]["BroadcastProblem"] | null;
            startedAt: string | null;
            endedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
            html: string | null;
            text: string | null;
        };
        /** BroadcastSummary */
        BroadcastSummary: {
            id: string;
            /** @example May letter */
            name: string;
            /**
             * @description `sending` until each of its messages was tried once. While it is `paused`, its messages wait.
             * @enum {string}
             */
            status: "draft" | "scheduled" | "sending" | "paused" | "sent" | "canceled";
            topicId: string;
            segmentId: string | null;
            from: components["schemas"]["MailAddress"];
            replyTo: components["schemas"]["MailAddress"][];
            subject: string | null;
            templateId: string | null;
            scheduledAt: string | null;
            ratePerHour: number | null;
            /** @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the From domain or the project. */
            routeIds: string[];
            abTest: components["schemas"]["BroadcastTest"] | null;
            counts: components["schemas"]["BroadcastCounts"];
            problem: components["schemas"]["BroadcastProblem"] | null;
            startedAt: string | null;
            endedAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /**
         * BroadcastChanges
         * @example {
         *       "subject": "Hello again"
         *     }
         */
        BroadcastChanges: {
            /** @example May letter */
            name?: string;
            /**
             * @description The topic that readers leave by its unsubscribe link.
             * @example top_01hzy8
             */
            topicId?: string;
            segmentId?: string | null;
            /**
             * @example ana@example.com
             * @example {
             *       "email": "ana@example.com"
             *     }
             */
            from?: string | components["schemas"]["SendAddress"];
            replyTo?: (string | components["schemas"]["SendAddress"] | (string | components["schemas"]["SendAddress"])[]) | null;
            subject?: string | null;
            templateId?: string | null;
            html?: string | null;
            text?: string | null;
            scheduledAt?: string | null;
            ratePerHour?: number | null;
            /**
             * @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the From domain or the project. Requires an account-wide key.
             * @example [
             *       "default"
             *     ]
             */
            routeIds?: string[];
            abTest?: components["schemas"]["NewBroadcastTest"] | null;
        };
        /** BroadcastCheck */
        BroadcastCheck: {
            wouldAccept: boolean;
            error?: components["schemas"]["ItemError"];
            /** @description Octets of the message, roughly. */
            size: number;
            /** @description True if Gmail would hide the end of the html. */
            clipped: boolean;
            findings: {
                /** @enum {string} */
                level: "error" | "warning" | "info";
                code: string;
                message: string;
                fix: string;
            }[];
            /** @description Contacts that pass the filter of its segment now. */
            contacts: number;
            /** @description Values that the content shows and contacts lack. A variable with a `default` filter, in an `if`, or of a property with a fallback is left out. */
            missing: {
                /** @example contact.firstName */
                variable: string;
                /** @description Contacts without a value for it. */
                contacts: number;
            }[];
        };
        /** BroadcastLinks */
        BroadcastLinks: {
            links: {
                /** @example https://example.com/news */
                url: string;
                works: boolean | null;
                status: number | null;
                problem: string | null;
            }[];
        };
        /** TestBroadcast */
        TestBroadcast: {
            to: string[];
            contactId?: string | null;
        };
        /** TestedBroadcast */
        TestedBroadcast: {
            messages: {
                id: string;
                to: string;
            }[];
        };
        /** SendBroadcast */
        SendBroadcast: {
            /** @description Send also if contacts lack values that the content shows. */
            allowMissing?: boolean;
        };
        /** BroadcastRecipient */
        BroadcastRecipient: {
            /** @description Id of the message. */
            id: string;
            email: string;
            contactId: string | null;
            /** @enum {string} */
            status: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed";
            reason: string | null;
            bounceType: ("hard" | "soft") | null;
            /** @description Whether a person has opened it. */
            opened: boolean;
            /** @description Whether a person has clicked a link of it. */
            clicked: boolean;
            lastEventAt: string | null;
        };
        /** RateWithMargin */
        RateWithMargin: {
            /** @description Recipients, without machines. */
            count: number;
            rate: number | null;
            low: number | null;
            high: number | null;
            margin: number | null;
        };
        /** BroadcastVariant */
        BroadcastVariant: {
            /** @example News of May */
            subject: string;
            /** @description Messages made. */
            recipients: number;
            delivered: number;
            opened: components["schemas"]["RateWithMargin"];
            clicked: components["schemas"]["RateWithMargin"];
            complained: number;
            unsubscribed: number;
        };
        /**
         * BroadcastTestResults
         * @description The messages of the test so far, on a scale from 0 to 1. `abTest.decision` of the broadcast says what was decided by the figures of that time.
         */
        BroadcastTestResults: {
            a: components["schemas"]["BroadcastVariant"];
            b: components["schemas"]["BroadcastVariant"];
            better: ("a" | "b") | null;
            /** @example No reader has opened a message of the test. */
            why: string;
            difference: number | null;
            low: number | null;
            high: number | null;
        };
        /**
         * BroadcastRates
         * @description From 0 to 1. Null: nothing to divide by.
         */
        BroadcastRates: {
            delivered: number | null;
            bounced: number | null;
            complained: number | null;
            opened: number | null;
            clicked: number | null;
            unsubscribed: number | null;
        };
        /** BroadcastResults */
        BroadcastResults: {
            abTest: components["schemas"]["BroadcastTestResults"] | null;
            rates: components["schemas"]["BroadcastRates"];
            /** @description Oldest first, without intervals in which nothing happened; at most 1000. */
            data: {
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                at: string;
                sent: number;
                delivered: number;
                bounced: number;
                complained: number;
                failed: number;
                opened: number;
                clicked: number;
                unsubscribed: number;
            }[];
        };
        /** Suppression */
        Suppression: {
            id: string;
            /** @description The address in lower case. */
            email: string;
            /** @enum {string} */
            reason: "bounce" | "complaint" | "manual";
            bounceType: ("hard" | "soft") | null;
            messageId: string | null;
            note: string | null;
            expiresAt: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** ImportRow */
        ImportRow: {
            /**
             * @description Its number in the file, with the heading as row 1.
             * @example 2
             */
            row: number;
            email: string;
            /** @enum {string} */
            outcome: "created" | "updated" | "unchanged" | "failed";
            error: string | null;
        };
        /** ImportPreview */
        ImportPreview: {
            /**
             * @description The product that wrote the file, by its heading.
             * @enum {string}
             */
            form: "postrider" | "resend" | "sendgrid" | "mailgun" | "postmark" | "ses" | "other";
            columns: {
                name: string;
                field: string | null;
            }[];
            rows: number;
            created: number;
            updated: number;
            /** @description 0 for a key that may not read the list: those are in `updated`. */
            unchanged: number;
            failed: number;
            /** @description The first rows that would fail. */
            faults: components["schemas"]["ImportRow"][];
        };
        /** BegunImport */
        BegunImport: {
            /** @example imp_01k5x8q2m4e6r8t0v2w4y6z8a0 */
            id: string;
        };
        /** Import */
        Import: {
            /** @example imp_01k5x8q2m4e6r8t0v2w4y6z8a0 */
            id: string;
            /** @enum {string} */
            kind: "contacts" | "suppressions";
            /** @enum {string} */
            status: "running" | "done";
            /** @description Rows of the file. */
            rows: number;
            created: number;
            updated: number;
            /** @description 0 for a key that may not read the list: those are in `updated`. */
            unchanged: number;
            failed: number;
            /**
             * @description The path that lists what became of each row.
             * @example /v1/imports/imp_01k5x8q2m4e6r8t0v2w4y6z8a0/rows
             */
            resultUrl: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            endedAt: string | null;
        };
        /** Stats */
        Stats: {
            /** @description Every interval of the range, oldest first, including those without messages. */
            data: {
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                at: string;
                /** @description Recipients of messages accepted for sending. */
                accepted: number;
                /** @description Handed to the smarthost, if one is configured. */
                sent: number;
                /** @description Accepted by the recipient's server. */
                delivered: number;
                /** @description Deferrals. Each one counts. */
                delayed: number;
                bounced: number;
                complained: number;
                /** @description Recipients that were not tried, such as suppressed addresses. */
                rejected: number;
                /** @description Includes rendering failures and canceled sends. */
                failed: number;
                /** @description Recipients who opened. Machines do not count. */
                opened: number;
                /** @description Recipients who clicked. Machines do not count. */
                clicked: number;
                /** @description Messages received. A message to two inboxes counts twice. */
                received: number;
            }[];
            totals: {
                /** @description Recipients of messages accepted for sending. */
                accepted: number;
                /** @description Handed to the smarthost, if one is configured. */
                sent: number;
                /** @description Accepted by the recipient's server. */
                delivered: number;
                /** @description Deferrals. Each one counts. */
                delayed: number;
                bounced: number;
                complained: number;
                /** @description Recipients that were not tried, such as suppressed addresses. */
                rejected: number;
                /** @description Includes rendering failures and canceled sends. */
                failed: number;
                /** @description Recipients who opened. Machines do not count. */
                opened: number;
                /** @description Recipients who clicked. Machines do not count. */
                clicked: number;
                /** @description Messages received. A message to two inboxes counts twice. */
                received: number;
            };
            /** @description Shares from 0 to 1 of the recipients whose outcome became known in the range: sent, delivered, bounced, complained or failed. Each counts once. Simulated and rejected recipients and canceled sends do not count. Projects are suspended by the same rates. */
            rates: {
                bounce: number;
                complaint: number;
            };
            /** @description The 50 domains with the most recipients, over the UTC days of the range. Per day only the first 1000 domains are listed by name. The rest is `other`. Days older than 400 days may be deleted. */
            byDestination: {
                domain: string;
                delivered: number;
                delayed: number;
                bounced: number;
                medianSeconds: number | null;
            }[];
            /** @description Large providers of the recipients' mailboxes, over the UTC days of the range. Only messages that went straight to them count, and no simulated ones. */
            byProvider: {
                /**
                 * @description Name of its lane.
                 * @example google
                 */
                provider: string;
                /** @example Google */
                title: string;
                delivered: number;
                delayed: number;
                bounced: number;
                complained: number;
                /** @description Complaints as a share of the delivered messages, from 0 to 1. */
                complaintRate: number;
                standing: ("good" | "warn" | "bad") | null;
            }[];
        };
        /** Resources */
        Resources: {
            /** @description Mail, attachments, templates, contacts, stored answers and logs, in octets before compression. Deleted messages stop counting within two hours. */
            storedOctets: {
                used: number;
                limit: number | null;
            };
            templates: {
                used: number;
                limit: number | null;
            };
            webhooks: {
                used: number;
                limit: number | null;
            };
            inboxes: {
                used: number;
                limit: number | null;
            };
            domains: {
                used: number;
                limit: number | null;
            };
            /** @description The project's own keys that are not revoked. */
            apiKeys: {
                used: number;
                limit: number | null;
            };
            contacts: {
                used: number;
                limit: number | null;
            };
            /** @description Bounces and complaints add entries even beyond the limit. */
            suppressions: {
                used: number;
                limit: number | null;
            };
        };
        /** Quota */
        Quota: {
            limit: number | null;
            /** @description Recipients accepted today, including suppressed, simulated and scheduled ones. Recipients that fail or are canceled later still count. */
            used: number;
            remaining: number | null;
            /**
             * Format: date-time
             * @description When the next UTC day begins.
             * @example 2026-01-31T09:30:00.000Z
             */
            resetAt: string;
            resources: components["schemas"]["Resources"];
        };
        /** Webhook */
        Webhook: {
            id: string;
            /** Format: uri */
            url: string;
            enabled: boolean;
            eventTypes: ("accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected" | "*" | "email.scheduled" | "email.sent" | "email.delivered" | "email.delivery_delayed" | "email.bounced" | "email.complained" | "email.opened" | "email.clicked" | "email.received" | "email.failed" | "email.suppressed")[];
            /** @description Whether events carry content. Without it they lack subject, bodies, headers, links, replies of other servers, and every address except the recipient's. */
            content: boolean;
            /** @description Shown once, when it is created or rotated. Empty otherwise. */
            signingSecret: string;
            disabledReason: string | null;
            failingSince: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            updatedAt: string;
        };
        /** WebhookDelivery */
        WebhookDelivery: {
            /** @description The `id` in the payload. It stays the same in every retry and replay. */
            id: string;
            /** @enum {string} */
            type: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected";
            messageId: string | null;
            eventId: string | null;
            /** @enum {string} */
            status: "pending" | "succeeded" | "failed";
            /** @description Attempts so far. A replay starts again at 0. */
            attempts: number;
            nextAttemptAt: string | null;
            lastAttemptAt: string | null;
            httpStatus: number | null;
            response: string | null;
            error: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
        };
        /** WebhookDeliveryDetail */
        WebhookDeliveryDetail: {
            /** @description The `id` in the payload. It stays the same in every retry and replay. */
            id: string;
            /** @enum {string} */
            type: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected";
            messageId: string | null;
            eventId: string | null;
            /** @enum {string} */
            status: "pending" | "succeeded" | "failed";
            /** @description Attempts so far. A replay starts again at 0. */
            attempts: number;
            nextAttemptAt: string | null;
            lastAttemptAt: string | null;
            httpStatus: number | null;
            response: string | null;
            error: string | null;
            /**
             * Format: date-time
             * @description ISO 8601 time, UTC.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            /** @description Every attempt that has ended, oldest first; after replays the last 20. */
            attemptLog: {
                /**
                 * Format: date-time
                 * @description ISO 8601 time, UTC.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                at: string;
                httpStatus: number | null;
                response: string | null;
                error: string | null;
            }[];
            request: {
                /** @description The webhook's URL now. */
                url: string;
                body: string | null;
            };
        };
        /** AcceptedEvent */
        AcceptedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "accepted";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                /** @description Of a scheduled message. */
                accepted?: {
                    /**
                     * Format: date-time
                     * @description ISO 8601 time, UTC.
                     * @example 2026-01-31T09:30:00.000Z
                     */
                    scheduledAt: string;
                };
            };
        };
        /** QueuedEvent */
        QueuedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "queued";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
            };
        };
        /** SendingEvent */
        SendingEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "sending";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                sending: {
                    attempt: number;
                };
            };
        };
        /** SentEvent */
        SentEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "sent";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                sent: {
                    mx: string | null;
                    tls: string | null;
                    smtpCode: number | null;
                    /** @description Absent if the webhook gets no content. */
                    response?: string | null;
                };
            };
        };
        /** DeliveryDelayedEvent */
        DeliveryDelayedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "delivery_delayed";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                delivery_delayed: {
                    attempt: number;
                    nextAttemptAt: string | null;
                    category?: string | null;
                    smtpCode?: number | null;
                    enhancedCode?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    diagnostic?: string | null;
                    mx?: string | null;
                };
            };
        };
        /** DeliveryEvent */
        DeliveryEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "delivery";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                delivery: {
                    mx: string | null;
                    tls: string | null;
                    smtpCode: number | null;
                    /** @description Absent if the webhook gets no content. */
                    response?: string | null;
                };
            };
        };
        /** BounceEvent */
        BounceEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "bounce";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                bounce: {
                    /**
                     * @description A hard bounce suppresses the address for good, a soft one for 7 days.
                     * @enum {string}
                     */
                    type: "hard" | "soft";
                    reason: string | null;
                    category?: string | null;
                    smtpCode?: number | null;
                    enhancedCode?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    diagnostic?: string | null;
                    mx?: string | null;
                };
            };
        };
        /** ComplaintEvent */
        ComplaintEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "complaint";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                complaint: {
                    feedbackType: string | null;
                };
            };
        };
        /** RejectedEvent */
        RejectedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "rejected";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                rejected: {
                    reason: string | null;
                    category?: string | null;
                    smtpCode?: number | null;
                    enhancedCode?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    diagnostic?: string | null;
                    mx?: string | null;
                };
            };
        };
        /** RenderingFailureEvent */
        RenderingFailureEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "rendering_failure";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                rendering_failure: {
                    category?: string | null;
                    smtpCode?: number | null;
                    enhancedCode?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    diagnostic?: string | null;
                    mx?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    reason?: string | null;
                };
            };
        };
        /** FailedEvent */
        FailedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "failed";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                failed: {
                    reason: string | null;
                    category?: string | null;
                    smtpCode?: number | null;
                    enhancedCode?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    diagnostic?: string | null;
                    mx?: string | null;
                };
            };
        };
        /** OpenEvent */
        OpenEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "open";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                open: {
                    ip: string | null;
                    userAgent: string | null;
                    /** @description True for the recipient's first open, also by a machine. */
                    first: boolean;
                    /** @description True for a proxy, scanner or prefetch. */
                    machine: boolean;
                };
            };
        };
        /** ClickEvent */
        ClickEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "click";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                click: {
                    /** @description Absent if the webhook gets no content. */
                    url?: string;
                    ip: string | null;
                    userAgent: string | null;
                    /** @description True for a proxy, scanner or prefetch. */
                    machine: boolean;
                };
            };
        };
        /** UnsubscribedEvent */
        UnsubscribedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "unsubscribed";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                unsubscribed: {
                    /**
                     * @description The way that the recipient took: `page` is the button behind the link.
                     * @enum {string}
                     */
                    how: "one_click" | "page" | "mail" | "api";
                    /** @description The topic that they left, if it is not the whole subscription. */
                    topicId?: string;
                };
            };
        };
        /** InboundReceivedEvent */
        InboundReceivedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "inbound_received";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                inbound_received: {
                    inboxId: string | null;
                    from?: components["schemas"]["MailAddress"];
                    /** @description Absent if the webhook gets no content. */
                    to?: components["schemas"]["MailAddress"][];
                    /** @description Absent if the webhook gets no content. */
                    subject?: string;
                    /** @description Absent if the webhook gets no content. */
                    auth?: components["schemas"]["Authentication"] | null;
                    threadId: string | null;
                    /** @description Absent if the webhook gets no content. */
                    text?: string | null;
                    /** @description Absent if the webhook gets no content. */
                    html?: string | null;
                    /** @description True if text or html is longer than the 256 KiB shown, or was removed by retention. Absent if the webhook gets no content. */
                    truncated?: boolean;
                    /** @description Absent if the webhook gets no content. */
                    attachments?: components["schemas"]["Attachment"][];
                    spam: components["schemas"]["Spam"] | null;
                    /** @description Absent if the webhook gets no content. */
                    sender?: components["schemas"]["SenderVerdict"] | null;
                };
            };
        };
        /** InboundRejectedEvent */
        InboundRejectedEvent: {
            /** @description Id of the delivery. It stays the same in every retry and replay. */
            id: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "inbound_rejected";
            /**
             * Format: date-time
             * @description When this attempt was signed: `t` of the signature.
             * @example 2026-01-31T09:30:00.000Z
             */
            createdAt: string;
            data: {
                messageId: string;
                senderId: string;
                /** @description The recipient. */
                email?: string;
                /**
                 * Format: date-time
                 * @description When it happened.
                 * @example 2026-01-31T09:30:00.000Z
                 */
                occurredAt: string;
                tags: {
                    name: string;
                    value: string;
                }[];
                /** @constant */
                testMode?: true;
                inbound_rejected: {
                    /**
                     * @description Who refused it: the policy of its author's domain, a rule, or the inbox, for its sender. `dropped`: a rule let it be accepted, and kept only its header.
                     * @enum {string}
                     */
                    reason: "dmarc" | "rule" | "dropped" | "sender_blocked" | "sender_unauthenticated" | "sender_not_allowed";
                    rule?: components["schemas"]["AppliedRule"];
                    inboxId: string | null;
                    from?: components["schemas"]["MailAddress"];
                    /** @description Absent if the webhook gets no content. */
                    to?: components["schemas"]["MailAddress"][];
                    /** @description Absent if the webhook gets no content. */
                    subject?: string;
                    /** @description Absent if the webhook gets no content. */
                    auth?: components["schemas"]["Authentication"] | null;
                };
            };
        };
        /** WebhookEvent */
        WebhookEvent: components["schemas"]["AcceptedEvent"] | components["schemas"]["QueuedEvent"] | components["schemas"]["SendingEvent"] | components["schemas"]["SentEvent"] | components["schemas"]["DeliveryDelayedEvent"] | components["schemas"]["DeliveryEvent"] | components["schemas"]["BounceEvent"] | components["schemas"]["ComplaintEvent"] | components["schemas"]["RejectedEvent"] | components["schemas"]["RenderingFailureEvent"] | components["schemas"]["FailedEvent"] | components["schemas"]["OpenEvent"] | components["schemas"]["ClickEvent"] | components["schemas"]["UnsubscribedEvent"] | components["schemas"]["InboundReceivedEvent"] | components["schemas"]["InboundRejectedEvent"];
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type JsonValue = components['schemas']['JsonValue'];
export type Home = components['schemas']['Home'];
export type SendAddress = components['schemas']['SendAddress'];
export type SendAttachment = components['schemas']['SendAttachment'];
export type SendCalendar = components['schemas']['SendCalendar'];
export type SendItem = components['schemas']['SendItem'];
export type AcceptedMessage = components['schemas']['AcceptedMessage'];
export type Warning = components['schemas']['Warning'];
export type MayWarn = components['schemas']['MayWarn'];
export type Highlight = components['schemas']['Highlight'];
export type MessageSummary = components['schemas']['MessageSummary'];
export type ItemError = components['schemas']['ItemError'];
export type SendCheck = components['schemas']['SendCheck'];
export type Attachment = components['schemas']['Attachment'];
export type Recipient = components['schemas']['Recipient'];
export type MailAddress = components['schemas']['MailAddress'];
export type Authentication = components['schemas']['Authentication'];
export type Spam = components['schemas']['Spam'];
export type SenderVerdict = components['schemas']['SenderVerdict'];
export type AppliedRule = components['schemas']['AppliedRule'];
export type EventDetails = components['schemas']['EventDetails'];
export type MessageEvent = components['schemas']['MessageEvent'];
export type Envelope = components['schemas']['Envelope'];
export type Invitation = components['schemas']['Invitation'];
export type Forward = components['schemas']['Forward'];
export type Message = components['schemas']['Message'];
export type DeliveryAttempt = components['schemas']['DeliveryAttempt'];
export type Explanation = components['schemas']['Explanation'];
export type ReleaseEmail = components['schemas']['ReleaseEmail'];
export type ForwardEmail = components['schemas']['ForwardEmail'];
export type ListedThread = components['schemas']['ListedThread'];
export type Mailbox = components['schemas']['Mailbox'];
export type Thread = components['schemas']['Thread'];
export type ThreadMessage = components['schemas']['ThreadMessage'];
export type Author = components['schemas']['Author'];
export type Note = components['schemas']['Note'];
export type ThreadChanges = components['schemas']['ThreadChanges'];
export type NewReply = components['schemas']['NewReply'];
export type AcceptedReply = components['schemas']['AcceptedReply'];
export type NewDraft = components['schemas']['NewDraft'];
export type Draft = components['schemas']['Draft'];
export type DraftSummary = components['schemas']['DraftSummary'];
export type DraftFields = components['schemas']['DraftFields'];
export type SendDraft = components['schemas']['SendDraft'];
export type NewNote = components['schemas']['NewNote'];
export type ErasureCounts = components['schemas']['ErasureCounts'];
export type Erasure = components['schemas']['Erasure'];
export type NewApiKey = components['schemas']['NewApiKey'];
export type ApiKey = components['schemas']['ApiKey'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type NewMember = components['schemas']['NewMember'];
export type Member = components['schemas']['Member'];
export type MemberChanges = components['schemas']['MemberChanges'];
export type MemberSession = components['schemas']['MemberSession'];
export type Health = components['schemas']['Health'];
export type Notice = components['schemas']['Notice'];
export type NoticeChanges = components['schemas']['NoticeChanges'];
export type Lane = components['schemas']['Lane'];
export type Setting = components['schemas']['Setting'];
export type Account = components['schemas']['Account'];
export type Me = components['schemas']['Me'];
export type AccountSettings = components['schemas']['AccountSettings'];
export type AccountChanges = components['schemas']['AccountChanges'];
export type NewProject = components['schemas']['NewProject'];
export type Sender = components['schemas']['Sender'];
export type ProjectChanges = components['schemas']['ProjectChanges'];
export type NewRouteWarmUp = components['schemas']['NewRouteWarmUp'];
export type NewRouteEvents = components['schemas']['NewRouteEvents'];
export type RouteWarmUp = components['schemas']['RouteWarmUp'];
export type RouteEvents = components['schemas']['RouteEvents'];
export type Route = components['schemas']['Route'];
export type DelegationRecord = components['schemas']['DelegationRecord'];
export type Delegation = components['schemas']['Delegation'];
export type DnsRecord = components['schemas']['DnsRecord'];
export type Domain = components['schemas']['Domain'];
export type CheckedDnsRecord = components['schemas']['CheckedDnsRecord'];
export type SpfEvaluation = components['schemas']['SpfEvaluation'];
export type CheckedDomain = components['schemas']['CheckedDomain'];
export type Receiving = components['schemas']['Receiving'];
export type DomainRecord = components['schemas']['DomainRecord'];
export type ReportRow = components['schemas']['ReportRow'];
export type PolicyAdvice = components['schemas']['PolicyAdvice'];
export type Inbox = components['schemas']['Inbox'];
export type NewListedSender = components['schemas']['NewListedSender'];
export type ListedSender = components['schemas']['ListedSender'];
export type RuleConditions = components['schemas']['RuleConditions'];
export type RuleActions = components['schemas']['RuleActions'];
export type NewRule = components['schemas']['NewRule'];
export type Rule = components['schemas']['Rule'];
export type RuleChanges = components['schemas']['RuleChanges'];
export type TryRules = components['schemas']['TryRules'];
export type RuleTrial = components['schemas']['RuleTrial'];
export type NewForwardAddress = components['schemas']['NewForwardAddress'];
export type ForwardAddress = components['schemas']['ForwardAddress'];
export type Template = components['schemas']['Template'];
export type RenderedTemplate = components['schemas']['RenderedTemplate'];
export type GivenConsent = components['schemas']['GivenConsent'];
export type NewContact = components['schemas']['NewContact'];
export type Consent = components['schemas']['Consent'];
export type Contact = components['schemas']['Contact'];
export type ContactChanges = components['schemas']['ContactChanges'];
export type ContactBatch = components['schemas']['ContactBatch'];
export type SavedContact = components['schemas']['SavedContact'];
export type NewContactProperty = components['schemas']['NewContactProperty'];
export type ContactProperty = components['schemas']['ContactProperty'];
export type ContactPropertyChanges = components['schemas']['ContactPropertyChanges'];
export type NewTopic = components['schemas']['NewTopic'];
export type Topic = components['schemas']['Topic'];
export type TopicChanges = components['schemas']['TopicChanges'];
export type NewSegment = components['schemas']['NewSegment'];
export type Segment = components['schemas']['Segment'];
export type CountSegment = components['schemas']['CountSegment'];
export type SegmentCount = components['schemas']['SegmentCount'];
export type SegmentChanges = components['schemas']['SegmentChanges'];
export type NewBroadcastTest = components['schemas']['NewBroadcastTest'];
export type NewBroadcast = components['schemas']['NewBroadcast'];
export type BroadcastDecision = components['schemas']['BroadcastDecision'];
export type BroadcastTest = components['schemas']['BroadcastTest'];
export type BroadcastCounts = components['schemas']['BroadcastCounts'];
export type BroadcastProblem = components['schemas']['BroadcastProblem'];
export type Broadcast = components['schemas']['Broadcast'];
export type BroadcastSummary = components['schemas']['BroadcastSummary'];
export type BroadcastChanges = components['schemas']['BroadcastChanges'];
export type BroadcastCheck = components['schemas']['BroadcastCheck'];
export type BroadcastLinks = components['schemas']['BroadcastLinks'];
export type TestBroadcast = components['schemas']['TestBroadcast'];
export type TestedBroadcast = components['schemas']['TestedBroadcast'];
export type SendBroadcast = components['schemas']['SendBroadcast'];
export type BroadcastRecipient = components['schemas']['BroadcastRecipient'];
export type RateWithMargin = components['schemas']['RateWithMargin'];
export type BroadcastVariant = components['schemas']['BroadcastVariant'];
export type BroadcastTestResults = components['schemas']['BroadcastTestResults'];
export type BroadcastRates = components['schemas']['BroadcastRates'];
export type BroadcastResults = components['schemas']['BroadcastResults'];
export type Suppression = components['schemas']['Suppression'];
export type ImportRow = components['schemas']['ImportRow'];
export type ImportPreview = components['schemas']['ImportPreview'];
export type BegunImport = components['schemas']['BegunImport'];
export type Import = components['schemas']['Import'];
export type Stats = components['schemas']['Stats'];
export type Resources = components['schemas']['Resources'];
export type Quota = components['schemas']['Quota'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];
export type WebhookDeliveryDetail = components['schemas']['WebhookDeliveryDetail'];
export type AcceptedEvent = components['schemas']['AcceptedEvent'];
export type QueuedEvent = components['schemas']['QueuedEvent'];
export type SendingEvent = components['schemas']['SendingEvent'];
export type SentEvent = components['schemas']['SentEvent'];
export type DeliveryDelayedEvent = components['schemas']['DeliveryDelayedEvent'];
export type DeliveryEvent = components['schemas']['DeliveryEvent'];
export type BounceEvent = components['schemas']['BounceEvent'];
export type ComplaintEvent = components['schemas']['ComplaintEvent'];
export type RejectedEvent = components['schemas']['RejectedEvent'];
export type RenderingFailureEvent = components['schemas']['RenderingFailureEvent'];
export type FailedEvent = components['schemas']['FailedEvent'];
export type OpenEvent = components['schemas']['OpenEvent'];
export type ClickEvent = components['schemas']['ClickEvent'];
export type UnsubscribedEvent = components['schemas']['UnsubscribedEvent'];
export type InboundReceivedEvent = components['schemas']['InboundReceivedEvent'];
export type InboundRejectedEvent = components['schemas']['InboundRejectedEvent'];
export type WebhookEvent = components['schemas']['WebhookEvent'];
export interface operations {
    listEmails: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description `complaint` means `complained`. */
                status?: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivered" | "bounced" | "complained" | "rejected" | "rendering_failure" | "failed" | "inbound_rejected" | "complaint";
                direction?: "inbound" | "outbound";
                /** @description Of received messages: `sender.trust` of the record. */
                trust?: "blocked" | "unauthenticated" | "authenticated" | "known" | "allowed";
                /** @description Part of a recipient, the sender or the subject. Case does not matter. One page searches at most 2000 messages, so it may be short or empty although more follow. */
                q?: string;
                /** @description Words of the subject, of the first 64 KiB of each body, or of a file name. A message must have all of them. Case and accents do not count. A new message is found after a few seconds. One page compares at most 2000 messages, so it may be short or empty although more follow. */
                text?: string;
                /** @description The sender's address. */
                from?: string;
                /** @description A recipient's address in `to`, `cc` or `bcc`. */
                to?: string;
                /** @description A tag as `name:value`. */
                tag?: string;
                /** @description Created at or after this ISO 8601 time, or since the start of this UTC day. */
                after?: string;
                /** @description Created before this ISO 8601 time, or before the start of this UTC day. */
                before?: string;
                /** @description If no message fits, wait up to this many seconds for one, then answer with an empty page. Give `after` to wait for a new one. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List messages, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["MessageSummary"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                        /**
                         * Format: date-time
                         * @description Present while `text` does not find messages from before this time yet, because an upgrade still indexes them.
                         */
                        indexedSince?: string;
                    };
                };
            };
        };
    };
    sendEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendItem"];
            };
        };
        responses: {
            /** @description Send a message */
            202: {
                content: {
                    "application/json": components["schemas"]["AcceptedMessage"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    sendEmailBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    emails: components["schemas"]["SendItem"][];
                    /**
                     * @description If true, either all items are accepted or none: the first bad item is the error of the whole request.
                     * @default false
                     */
                    strict?: boolean;
                };
            };
        };
        responses: {
            /** @description Send up to 100 messages. Each succeeds or fails separately */
            207: {
                content: {
                    "application/json": {
                        /** @description One result per item, in the same order. */
                        data: {
                            /** @description Present if the item was accepted. */
                            id?: string;
                            /** @enum {string} */
                            status?: "accepted" | "queued";
                            /**
                             * Format: date-time
                             * @description ISO 8601 time, UTC.
                             * @example 2026-01-31T09:30:00.000Z
                             */
                            scheduledAt?: string;
                            error?: components["schemas"]["ItemError"];
                            /** @description What was ignored or may not do what you expect. Absent if there is nothing to say. */
                            warnings?: components["schemas"]["Warning"][];
                        }[];
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    checkEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SendItem"];
            };
        };
        responses: {
            /** @description Check a message without sending it */
            200: {
                content: {
                    "application/json": components["schemas"]["SendCheck"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a message with its body and events */
            200: {
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
        };
    };
    deleteEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a message */
            204: {
                content?: never;
            };
        };
    };
    rescheduleEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description ISO 8601 time with a zone. A past time sends now.
                     * @example 2026-01-31T09:30:00Z
                     */
                    scheduledAt: string;
                };
            };
        };
        responses: {
            /** @description Reschedule a message */
            200: {
                content: {
                    "application/json": {
                        id: string;
                        /** @constant */
                        status: "accepted";
                        /**
                         * Format: date-time
                         * @description ISO 8601 time, UTC.
                         * @example 2026-01-31T09:30:00.000Z
                         */
                        scheduledAt: string;
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listEmailAttempts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List a message's delivery attempts with their SMTP conversations, oldest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["DeliveryAttempt"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    explainEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Explain in plain words what became of a message, and what to do */
            200: {
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
        };
    };
    cancelEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancel a scheduled message */
            200: {
                content: {
                    "application/json": {
                        id: string;
                        /** @constant */
                        status: "failed";
                    };
                };
            };
        };
    };
    approveEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Approve a message that waits for it */
            200: {
                content: {
                    "application/json": {
                        id: string;
                        /** @enum {string} */
                        status: "queued" | "accepted";
                    };
                };
            };
        };
    };
    rejectEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description Why, for the record and the `failed` event. If absent: `approval_rejected`.
                     * @example wrong recipient
                     */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description Reject a message that waits for an approval */
            200: {
                content: {
                    "application/json": {
                        id: string;
                        /** @constant */
                        status: "failed";
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    releaseEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReleaseEmail"];
            };
        };
        responses: {
            /** @description Send a captured message for real */
            202: {
                content: {
                    "application/json": components["schemas"]["AcceptedMessage"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    forwardEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForwardEmail"];
            };
        };
        responses: {
            /** @description Forward a message */
            202: {
                content: {
                    "application/json": components["schemas"]["AcceptedMessage"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getRawEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a message as raw RFC 5322 bytes */
            200: {
                content: {
                    "message/rfc822": string;
                };
            };
        };
    };
    getEmailAttachment: {
        parameters: {
            query?: {
                /** @description `1` lets a browser show a PDF file in a frame of our pages. */
                inline?: "0" | "1";
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description The id.
                 * @example att_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                attachmentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Download an attachment */
            200: {
                content: {
                    "*/*": string;
                };
            };
        };
    };
    previewEmail: {
        parameters: {
            query?: {
                /** @description `1` loads images of other hosts, which then learn of it. */
                images?: "0" | "1";
                /** @description Default: `light`. */
                theme?: "light" | "dark";
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example msg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Show a message's html as a page that runs nothing */
            200: {
                content: {
                    "text/html": string;
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only events of these types, separated by commas. */
                types?: string;
                /** @description Only events of this message. */
                messageId?: string;
                /** @description Start after this event, which must be of the last hour and from a stream of this project. The header `Last-Event-ID` does the same. */
                lastEventId?: string;
                /** @description If true, a key with `drafts:write` also gets `draft_saved`, with the `draftId`, when a program saves a draft. */
                drafts?: boolean;
                /** @description Number of the newest events to begin with, oldest first. They are of as many of the newest messages, or of the last hour. With it, a stream that cannot start after `lastEventId` begins like this too. */
                recent?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Follow events live */
            200: {
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    listInboxThreads: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Part of the subject, a participant's address or the preview. Case does not matter. One page searches at most 100000 threads, so it may be short or empty although more follow. */
                q?: string;
                /** @description Words of the subject, of the first 64 KiB of each body, or of a file name. A message must have all of them. Case and accents do not count. A new message is found after a few seconds. One page compares at most 2000 messages, so it may be short or empty although more follow. */
                text?: string;
                /** @description If true, only unread threads; if false, only read ones. */
                unread?: boolean;
                /** @description If true, only archived threads; if false, only others. If absent: those of the inbox that are not archived, and all of another folder. */
                archived?: boolean;
                /** @description `inbox` if absent. */
                folder?: "inbox" | "spam" | "trash" | "snoozed";
                /** @description Only threads with this label, spelled exactly so. */
                label?: string;
                /** @description Only threads of this member; `none`: those that nobody has. */
                assignee?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the threads of an inbox, most recently active first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ListedThread"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                        /**
                         * Format: date-time
                         * @description Present while `text` does not find messages from before this time yet, because an upgrade still indexes them.
                         */
                        indexedSince?: string;
                    };
                };
            };
        };
    };
    listThreads: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Part of the subject, a participant's address or the preview. Case does not matter. One page searches at most 100000 threads, so it may be short or empty although more follow. */
                q?: string;
                /** @description Words of the subject, of the first 64 KiB of each body, or of a file name. A message must have all of them. Case and accents do not count. A new message is found after a few seconds. One page compares at most 2000 messages, so it may be short or empty although more follow. */
                text?: string;
                /** @description If true, only unread threads; if false, only read ones. */
                unread?: boolean;
                /** @description If true, only archived threads; if false, only others. If absent: those of the inbox that are not archived, and all of another folder. */
                archived?: boolean;
                /** @description `inbox` if absent. */
                folder?: "inbox" | "spam" | "trash" | "snoozed";
                /** @description Only threads with this label, spelled exactly so. */
                label?: string;
                /** @description Only threads of this member; `none`: those that nobody has. */
                assignee?: string;
                /** @description Only threads of this inbox. */
                inboxId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the threads of all inboxes, most recently active first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ListedThread"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                        /**
                         * Format: date-time
                         * @description Present while `text` does not find messages from before this time yet, because an upgrade still indexes them.
                         */
                        indexedSince?: string;
                    };
                };
            };
        };
    };
    getMailbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get the labels in use, and the members whom threads can be assigned to */
            200: {
                content: {
                    "application/json": components["schemas"]["Mailbox"];
                };
            };
        };
    };
    getThread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a thread with its last 100 messages, oldest first, and its notes */
            200: {
                content: {
                    "application/json": components["schemas"]["Thread"] & {
                        messages: components["schemas"]["ThreadMessage"][];
                        /** @description Internal notes, oldest first. */
                        notes: components["schemas"]["Note"][];
                    };
                };
            };
        };
    };
    deleteThread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a thread with all of its messages */
            204: {
                content?: never;
            };
        };
    };
    updateThread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThreadChanges"];
            };
        };
        responses: {
            /** @description Mark, label, assign or move a thread */
            200: {
                content: {
                    "application/json": components["schemas"]["Thread"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listThreadMessages: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List a thread's messages, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ThreadMessage"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    replyToThread: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewReply"];
            };
        };
        responses: {
            /** @description Reply to a message of a thread */
            202: {
                content: {
                    "application/json": components["schemas"]["AcceptedReply"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listDrafts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Only drafts of this thread. */
                threadId?: string;
                /** @description Only replies from this inbox. */
                inboxId?: string;
                /** @description Only drafts of this member or key. */
                authorId?: string;
                /** @description `key`: only what programs propose. `member`: only what people write. */
                authorType?: "member" | "key";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List drafts, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["DraftSummary"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createDraft: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDraft"];
            };
        };
        responses: {
            /** @description Save a draft, which a person can read and send */
            201: {
                content: {
                    "application/json": components["schemas"]["Draft"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getDraft: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a draft */
            200: {
                content: {
                    "application/json": components["schemas"]["Draft"];
                };
            };
        };
    };
    replaceDraft: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DraftFields"];
            };
        };
        responses: {
            /** @description Replace the fields of a draft */
            200: {
                content: {
                    "application/json": components["schemas"]["Draft"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    deleteDraft: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a draft */
            204: {
                content?: never;
            };
        };
    };
    sendDraft: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SendDraft"];
            };
        };
        responses: {
            /** @description Send a draft */
            202: {
                content: {
                    "application/json": components["schemas"]["AcceptedMessage"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    addNote: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewNote"];
            };
        };
        responses: {
            /** @description Add an internal note to a thread */
            201: {
                content: {
                    "application/json": components["schemas"]["Note"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    deleteNote: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example thr_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description Taken from the link.
                 * @example noteId
                 */
                noteId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete an internal note */
            204: {
                content?: never;
            };
        };
    };
    simulateInbound: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description The inbox. Alternatively, give its address in `to`.
                     * @example inb_01hzy8
                     */
                    inboxId?: string;
                    /**
                     * @example ana@example.com
                     * @example {
                     *       "email": "ana@example.com"
                     *     }
                     */
                    to?: string | components["schemas"]["SendAddress"];
                    /**
                     * @example ana@example.com
                     * @example {
                     *       "email": "ana@example.com"
                     *     }
                     */
                    from?: string | components["schemas"]["SendAddress"];
                    /** @example Hello */
                    subject?: string;
                    /** @example Hi Ana */
                    text?: string;
                    /** @example <p>Hi Ana</p> */
                    html?: string;
                    attachments?: components["schemas"]["SendAttachment"][];
                    /**
                     * @description A Message-ID, or the id of a message or thread.
                     * @example msg_01hzy8
                     */
                    inReplyTo?: string;
                };
            };
        };
        responses: {
            /** @description Simulate an inbound message */
            202: {
                content: {
                    "application/json": {
                        messageId: string;
                        threadId: string;
                        /** @constant */
                        testMode: true;
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    createErasure: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: idn-email
                     * @example ana@example.com
                     */
                    email: string;
                };
            };
        };
        responses: {
            /** @description Erase an address */
            202: {
                content: {
                    "application/json": components["schemas"]["Erasure"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getErasure: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get an erasure */
            200: {
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
        };
    };
    exportAddress: {
        parameters: {
            query: {
                email: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Export what is stored about an address */
            200: {
                content: {
                    "application/x-ndjson": string;
                };
            };
        };
    };
    listApiKeys: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List API keys, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ApiKey"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Production */
                    name: string;
                    senderId?: string | null;
                    /** @description What the key may do. If absent or empty: everything. */
                    scopes?: ("emails:send" | "emails:read" | "emails:approve" | "templates:read" | "templates:write" | "contacts:read" | "contacts:write" | "audience:read" | "audience:write" | "domains:read" | "domains:write" | "inboxes:read" | "inboxes:write" | "threads:read" | "threads:reply" | "drafts:write" | "suppressions:read" | "suppressions:write" | "webhooks:read" | "webhooks:write" | "api_keys:read" | "api_keys:write" | "senders:read" | "senders:write" | "metrics:read" | "audit:read" | "members:write" | "data:delete" | "data:export")[];
                    /** @description The only recipients of the key's sends. `@example.org` means that very domain and none below it. */
                    allowRecipients?: string[];
                    /** @description If true, the key's sends are `accepted` and wait until another key with `emails:approve` approves them. After 7 days they fail. */
                    approval?: boolean;
                    /** @description The key reads the mail of these inboxes of its project and answers it. Everything else is refused with 403, or not found. */
                    inboxIds?: string[];
                };
            };
        };
        responses: {
            /** @description Create an API key */
            201: {
                content: {
                    "application/json": components["schemas"]["NewApiKey"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    revokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example key_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoke an API key */
            204: {
                content?: never;
            };
        };
    };
    renameApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example key_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Production */
                    name: string;
                };
            };
        };
        responses: {
            /** @description Rename an API key */
            200: {
                content: {
                    "application/json": components["schemas"]["ApiKey"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listAuditLog: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Who made the change: the id of a key or member, or `member`, `key`, `cli`, `service`. */
                actor?: string;
                /** @description Noun and verb. */
                action?: string;
                /** @description What changed: its id, or its type, such as `domain`. */
                target?: string;
                /** @description The id of a project. */
                senderId?: string;
                /** @description At or after this time, or since this UTC day. */
                after?: string;
                /** @description Before this time, or before this UTC day. */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List who changed what */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["AuditEntry"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    listMembers: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List members, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Member"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createMember: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMember"];
            };
        };
        responses: {
            /** @description Invite a person */
            201: {
                content: {
                    "application/json": components["schemas"]["Member"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a member */
            200: {
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
        };
    };
    deleteMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Remove a member */
            204: {
                content?: never;
            };
        };
    };
    updateMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemberChanges"];
            };
        };
        responses: {
            /** @description Update a member */
            200: {
                content: {
                    "application/json": components["schemas"]["Member"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listMemberSessions: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List a member's sessions, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["MemberSession"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    endMemberSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End all sessions of a member */
            204: {
                content?: never;
            };
        };
    };
    endMemberSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
                /**
                 * @description Taken from the link.
                 * @example sessionId
                 */
                sessionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End a session of a member */
            204: {
                content?: never;
            };
        };
    };
    getHealth: {
        parameters: {
            query?: {
                /** @description True to check PTR, EHLO and SPF of the sending addresses, the zone of the service, the unsubscribe page and the role mailboxes, too. */
                dns?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Check the health of the installation */
            200: {
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    listNotices: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description True: only notices that were seen. False: only those that someone still has to see. One that is over is not among them, unless it happened once. */
                seen?: boolean;
                /** @description True: only notices that are over. False: only those that are still so. */
                ended?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List what needs someone, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Notice"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    updateNotice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NoticeChanges"];
            };
        };
        responses: {
            /** @description Mark a notice as seen */
            200: {
                content: {
                    "application/json": components["schemas"]["Notice"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listLanes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the lanes of outgoing mail */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Lane"][];
                    };
                };
            };
        };
    };
    openLane: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example name
                 */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Open a lane that rests or is blocked */
            200: {
                content: {
                    "application/json": components["schemas"]["Lane"];
                };
            };
        };
    };
    listSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the settings in effect, without secrets */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Setting"][];
                    };
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get this API key, its project and its limits */
            200: {
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
        };
    };
    getAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get the account's owner address, and who gets its notices */
            200: {
                content: {
                    "application/json": components["schemas"]["AccountSettings"];
                };
            };
        };
    };
    updateAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountChanges"];
            };
        };
        responses: {
            /** @description Update the account's owner address, and who gets its notices */
            200: {
                content: {
                    "application/json": components["schemas"]["AccountSettings"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listSenders: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List projects, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Sender"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createSender: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewProject"];
            };
        };
        responses: {
            /** @description Create a project */
            201: {
                content: {
                    "application/json": components["schemas"]["Sender"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getSender: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example snd_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a project */
            200: {
                content: {
                    "application/json": components["schemas"]["Sender"];
                };
            };
        };
    };
    deleteSender: {
        parameters: {
            query: {
                /** @description The project's `externalId`, so that no wrong id deletes a project. */
                confirm: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example snd_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a project with everything in it */
            202: {
                content: {
                    "application/json": {
                        id: string;
                        /** @constant */
                        status: "deleting";
                    };
                };
            };
        };
    };
    updateSender: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example snd_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProjectChanges"];
            };
        };
        responses: {
            /** @description Update a project */
            200: {
                content: {
                    "application/json": components["schemas"]["Sender"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listRoutes: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List routes, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Route"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createRoute: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Production */
                    name: string;
                    /**
                     * @description `mx`: straight to the recipients' mail servers. `relay`: through a smarthost.
                     * @example relay
                     * @enum {string}
                     */
                    kind: "mx" | "relay";
                    /**
                     * @description `smtp(s)://user:pass@host:port`, as `SMTP_RELAY_URL`. It is stored sealed and never shown.
                     * @example smtps://user:secret@smtp.example.com:465
                     */
                    relayUrl?: string;
                    pool?: string | null;
                    ratePerSecond?: number | null;
                    warmUp?: components["schemas"]["NewRouteWarmUp"] | null;
                    events?: components["schemas"]["NewRouteEvents"] | null;
                };
            };
        };
        responses: {
            /** @description Create a route */
            201: {
                content: {
                    "application/json": components["schemas"]["Route"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getRoute: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a route */
            200: {
                content: {
                    "application/json": components["schemas"]["Route"];
                };
            };
        };
    };
    deleteRoute: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a route */
            204: {
                content?: never;
            };
        };
    };
    updateRoute: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Production */
                    name?: string;
                    /**
                     * @description `smtp(s)://user:pass@host:port`, as `SMTP_RELAY_URL`. It is stored sealed and never shown.
                     * @example smtps://user:secret@smtp.example.com:465
                     */
                    relayUrl?: string;
                    pool?: string | null;
                    ratePerSecond?: number | null;
                    warmUp?: components["schemas"]["NewRouteWarmUp"] | null;
                    events?: components["schemas"]["NewRouteEvents"] | null;
                };
            };
        };
        responses: {
            /** @description Update a route */
            200: {
                content: {
                    "application/json": components["schemas"]["Route"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listDomains: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List domains, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Domain"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createDomain: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description The full domain name. We recommend a subdomain that is used for sending only.
                     * @example mail.example.com
                     */
                    domain: string;
                    /** @description The service's name server holds the domain's zone. You publish the NS record in `delegation`, and no other. The zone is served once that record is seen. */
                    delegated?: boolean;
                    /**
                     * @description Algorithms of the DKIM keys. With `both`, each message has two signatures. Many receivers do not verify Ed25519 yet.
                     * @enum {string}
                     */
                    dkimKeys?: "rsa" | "ed25519" | "both";
                    /**
                     * @description Of delegated domains alone. `manual`: the zone publishes `p=none`. `auto`: the policy becomes `quarantine` and then `reject` when reports show that this is safe, and `none` at once when they show that mail of yours fails.
                     * @enum {string}
                     */
                    dmarc?: "manual" | "auto";
                    /** @description Of delegated domains alone. If true, every name below the domain that has no records receives mail too, without a change of DNS: inboxes may be at `support@any.example.com` and `*@any.example.com`. Mail from there is signed by the domain. Turning it off while there are such inboxes is 409. */
                    wildcard?: boolean;
                };
            };
        };
        responses: {
            /** @description Add a sending domain */
            201: {
                content: {
                    "application/json": components["schemas"]["Domain"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a domain with the result of its last check */
            200: {
                content: {
                    "application/json": components["schemas"]["Domain"];
                };
            };
        };
    };
    deleteDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a domain without inboxes */
            204: {
                content?: never;
            };
        };
    };
    updateDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Whether the service's name server holds the domain's zone. */
                    delegated?: boolean;
                    /**
                     * @description Routes of its mail, in order; `default` is the one that the settings make. If no connection or login can be had on one, or its lane rests, the next is tried. Empty: those of the project. Requires an account-wide key.
                     * @example [
                     *       "default"
                     *     ]
                     */
                    routeIds?: string[];
                    /**
                     * @description Of delegated domains alone. `manual`: the zone publishes `p=none`. `auto`: the policy becomes `quarantine` and then `reject` when reports show that this is safe, and `none` at once when they show that mail of yours fails.
                     * @enum {string}
                     */
                    dmarc?: "manual" | "auto";
                    /** @description Of delegated domains alone. If true, every name below the domain that has no records receives mail too, without a change of DNS: inboxes may be at `support@any.example.com` and `*@any.example.com`. Mail from there is signed by the domain. Turning it off while there are such inboxes is 409. */
                    wildcard?: boolean;
                };
            };
        };
        responses: {
            /** @description Change a domain's routes, who holds its zone, who moves its DMARC policy, or its wildcard */
            200: {
                content: {
                    "application/json": components["schemas"]["Domain"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    verifyDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Check a domain's DNS records now */
            200: {
                content: {
                    "application/json": components["schemas"]["CheckedDomain"];
                };
            };
        };
    };
    rotateDomainDkim: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description Algorithms of the DKIM keys. With `both`, each message has two signatures. Many receivers do not verify Ed25519 yet.
                     * @enum {string}
                     */
                    dkimKeys?: "rsa" | "ed25519" | "both";
                };
            };
        };
        responses: {
            /** @description Rotate a domain's DKIM keys */
            200: {
                content: {
                    "application/json": components["schemas"]["Domain"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getDomainReceiving: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get whether a domain receives mail */
            200: {
                content: {
                    "application/json": components["schemas"]["Receiving"];
                };
            };
        };
    };
    setDomainReceiving: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    enabled: boolean;
                };
            };
        };
        responses: {
            /** @description Turn receiving for a verified domain on or off */
            200: {
                content: {
                    "application/json": components["schemas"]["Receiving"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listDomainRecords: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List your own records of a delegated domain, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["DomainRecord"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createDomainRecord: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    type: "A" | "AAAA" | "CNAME" | "TXT" | "MX" | "CAA";
                    /**
                     * @description The full name, at or below the domain. Its first label may be `*`.
                     * @example www.mail.example.com
                     */
                    name: string;
                    /**
                     * @description An address, a name, or text. A CAA record is like `0 issue "letsencrypt.org"`.
                     * @example 192.0.2.1
                     */
                    value: string;
                    /**
                     * @description Seconds for which resolvers keep the record. 3600 if left out.
                     * @example 3600
                     */
                    ttl?: number;
                    /** @description Of MX records alone: the host with the lowest is tried first. 10 if left out. */
                    priority?: number;
                };
            };
        };
        responses: {
            /** @description Add a record to a delegated domain */
            201: {
                content: {
                    "application/json": components["schemas"]["DomainRecord"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    deleteDomainRecord: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description Taken from the link.
                 * @example recordId
                 */
                recordId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete one of your records of a domain */
            204: {
                content?: never;
            };
        };
    };
    listDomainReports: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description `dmarc` if left out. */
                kind?: "dmarc" | "tls";
                /** @description First day of the reports. */
                from?: string;
                /** @description Last day of the reports. */
                to?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List what receivers report about a domain */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ReportRow"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    getPolicyAdvice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example dom_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get which DMARC policy is safe for a domain */
            200: {
                content: {
                    "application/json": components["schemas"]["PolicyAdvice"];
                };
            };
        };
    };
    listInboxes: {
        parameters: {
            query?: {
                domainId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List inboxes, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Inbox"][];
                    };
                };
            };
        };
    };
    createInbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: idn-email
                     * @description Full address, at a domain of the project. In capture mode also at `inbox.` + service domain. `*@example.com` is a catch-all: it gets the mail for every address of the domain that is no other mailbox.
                     * @example ana@example.com
                     */
                    address?: string;
                    /**
                     * @description Local part, together with `domainId`. Use it in place of `address`.
                     * @example support
                     */
                    localPart?: string;
                    /** @example dom_01hzy8 */
                    domainId?: string;
                    /** @example Support */
                    displayName?: string;
                    /**
                     * @description `agent` if absent.
                     * @enum {string}
                     */
                    type?: "sending" | "agent";
                    /**
                     * @description Whose mail the inbox takes; that of others, and of blocked senders, gets 550 and is recorded as `inbound_rejected`. `authenticated`: DMARC proves the author. `allowed`: the author is proven and on an allow list.
                     * @enum {string}
                     */
                    accept?: "anyone" | "authenticated" | "allowed";
                    /**
                     * @description The dashboard puts it below a message. Sends of the API do not get it.
                     * @example Ana, Acme support
                     */
                    signature?: string;
                };
            };
        };
        responses: {
            /** @description Create an inbox */
            201: {
                content: {
                    "application/json": components["schemas"]["Inbox"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getInbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get an inbox */
            200: {
                content: {
                    "application/json": components["schemas"]["Inbox"];
                };
            };
        };
    };
    deleteInbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete an inbox that never received mail */
            204: {
                content?: never;
            };
        };
    };
    updateInbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Support */
                    displayName?: string;
                    /** @enum {string} */
                    type?: "sending" | "agent";
                    /**
                     * @description Whose mail the inbox takes; that of others, and of blocked senders, gets 550 and is recorded as `inbound_rejected`. `authenticated`: DMARC proves the author. `allowed`: the author is proven and on an allow list.
                     * @enum {string}
                     */
                    accept?: "anyone" | "authenticated" | "allowed";
                    /**
                     * @description The dashboard puts it below a message. Sends of the API do not get it.
                     * @example Ana, Acme support
                     */
                    signature?: string;
                };
            };
        };
        responses: {
            /** @description Update an inbox */
            200: {
                content: {
                    "application/json": components["schemas"]["Inbox"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listInboxSenders: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the allowed and blocked senders of an inbox */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ListedSender"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createInboxSender: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewListedSender"];
            };
        };
        responses: {
            /** @description Allow or block a sender for an inbox */
            201: {
                content: {
                    "application/json": components["schemas"]["ListedSender"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    deleteInboxSender: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example inb_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description Taken from the link.
                 * @example entryId
                 */
                entryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Take a sender off the list of an inbox */
            204: {
                content?: never;
            };
        };
    };
    listProjectSenders: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the allowed and blocked senders of all inboxes of the project */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ListedSender"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createProjectSender: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewListedSender"];
            };
        };
        responses: {
            /** @description Allow or block a sender for all inboxes of the project */
            201: {
                content: {
                    "application/json": components["schemas"]["ListedSender"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    deleteProjectSender: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example entryId
                 */
                entryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Take a sender off the list of all inboxes of the project */
            204: {
                content?: never;
            };
        };
    };
    listRules: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List rules in the order in which they apply */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Rule"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createRule: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRule"];
            };
        };
        responses: {
            /** @description Create a rule for mail that arrives */
            201: {
                content: {
                    "application/json": components["schemas"]["Rule"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a rule */
            200: {
                content: {
                    "application/json": components["schemas"]["Rule"];
                };
            };
        };
    };
    deleteRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a rule */
            204: {
                content?: never;
            };
        };
    };
    updateRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RuleChanges"];
            };
        };
        responses: {
            /** @description Change a rule, its place, or turn it off */
            200: {
                content: {
                    "application/json": components["schemas"]["Rule"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    tryRules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TryRules"];
            };
        };
        responses: {
            /** @description Show what the rules would do to a received message, and why */
            200: {
                content: {
                    "application/json": components["schemas"]["RuleTrial"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listForwardAddresses: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the addresses that rules may forward to */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ForwardAddress"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createForwardAddress: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewForwardAddress"];
            };
        };
        responses: {
            /** @description Ask the owner of an address whether mail may be forwarded there */
            201: {
                content: {
                    "application/json": components["schemas"]["ForwardAddress"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getForwardAddress: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a forward address */
            200: {
                content: {
                    "application/json": components["schemas"]["ForwardAddress"];
                };
            };
        };
    };
    deleteForwardAddress: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Taken from the link.
                 * @example id
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forward nothing more to an address */
            204: {
                content?: never;
            };
        };
    };
    listTemplates: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List templates, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Template"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Order confirmation */
                    name: string;
                    /**
                     * @description The template's name in paths and sends. If absent, it is derived from `name`.
                     * @example order-confirmation
                     */
                    slug?: string;
                    /**
                     * @description May contain placeholders such as `{{ user.name }}`.
                     * @example Hello {{ name }}
                     */
                    subject: string;
                    html?: string | null;
                    text?: string | null;
                };
            };
        };
        responses: {
            /** @description Create a template */
            201: {
                content: {
                    "application/json": components["schemas"]["Template"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Id or slug of the template.
                 * @example tpl_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a template by id or slug */
            200: {
                content: {
                    "application/json": components["schemas"]["Template"];
                };
            };
        };
    };
    deleteTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Id or slug of the template.
                 * @example tpl_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a template */
            204: {
                content?: never;
            };
        };
    };
    updateTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Id or slug of the template.
                 * @example tpl_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @example Order confirmation */
                    name?: string;
                    /**
                     * @description The template's name in paths and sends. If absent, it is derived from `name`.
                     * @example order-confirmation
                     */
                    slug?: string;
                    /**
                     * @description May contain placeholders such as `{{ user.name }}`.
                     * @example Hello {{ name }}
                     */
                    subject?: string;
                    html?: string | null;
                    text?: string | null;
                };
            };
        };
        responses: {
            /** @description Update a template */
            200: {
                content: {
                    "application/json": components["schemas"]["Template"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    renderTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Id or slug of the template.
                 * @example tpl_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description Values for the placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
                     * @example {
                     *       "name": "Ana"
                     *     }
                     */
                    data?: {
                        [key: string]: components["schemas"]["JsonValue"];
                    };
                };
            };
        };
        responses: {
            /** @description Render a saved template without sending it */
            200: {
                content: {
                    "application/json": components["schemas"]["RenderedTemplate"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    previewTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description May contain placeholders such as `{{ user.name }}`.
                     * @example Hello {{ name }}
                     */
                    subject?: string;
                    html?: string | null;
                    text?: string | null;
                    /**
                     * @description Values for the placeholders. Send whole numbers beyond 2^53 as strings, because they lose digits.
                     * @example {
                     *       "name": "Ana"
                     *     }
                     */
                    data?: {
                        [key: string]: components["schemas"]["JsonValue"];
                    };
                };
            };
        };
        responses: {
            /** @description Render a draft without saving it */
            200: {
                content: {
                    "application/json": components["schemas"]["RenderedTemplate"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listContacts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                subscribed?: boolean;
                /** @description Part of the address, first name or last name. Case does not matter. */
                q?: string;
                /** @description Only those who pass the filter of this segment. */
                segmentId?: string;
                /** @description A filter as JSON, as segments have it. A longer one needs a segment. */
                filter?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List contacts, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Contact"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createContact: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewContact"];
            };
        };
        responses: {
            /** @description Create a contact */
            201: {
                content: {
                    "application/json": components["schemas"]["Contact"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listSegmentContacts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example seg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the contacts of a segment, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Contact"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    getContact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example con_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a contact */
            200: {
                content: {
                    "application/json": components["schemas"]["Contact"];
                };
            };
        };
    };
    deleteContact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example con_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a contact */
            204: {
                content?: never;
            };
        };
    };
    updateContact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example con_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContactChanges"];
            };
        };
        responses: {
            /** @description Update a contact */
            200: {
                content: {
                    "application/json": components["schemas"]["Contact"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    unsubscribeContact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example con_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description The message to the contact whose reader asked to be unsubscribed.
                     * @example msg_01hzy8
                     */
                    messageId?: string;
                };
            };
        };
        responses: {
            /** @description Unsubscribe a contact; it is not suppressed */
            200: {
                content: {
                    "application/json": components["schemas"]["Contact"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    resubscribeContact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example con_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Subscribe a contact again */
            200: {
                content: {
                    "application/json": components["schemas"]["Contact"];
                };
            };
        };
    };
    saveContactBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContactBatch"];
            };
        };
        responses: {
            /** @description Create or update up to 100 contacts. Each succeeds or fails separately */
            207: {
                content: {
                    "application/json": {
                        /** @description One result per contact, in the same order. */
                        data: components["schemas"]["SavedContact"][];
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listContactProperties: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the properties of contacts, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ContactProperty"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createContactProperty: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewContactProperty"];
            };
        };
        responses: {
            /** @description Define a property that contacts may have */
            201: {
                content: {
                    "application/json": components["schemas"]["ContactProperty"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getContactProperty: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example prp_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a property of contacts */
            200: {
                content: {
                    "application/json": components["schemas"]["ContactProperty"];
                };
            };
        };
    };
    deleteContactProperty: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example prp_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a property and its values */
            204: {
                content?: never;
            };
        };
    };
    updateContactProperty: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example prp_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContactPropertyChanges"];
            };
        };
        responses: {
            /** @description Change the fallback of a property */
            200: {
                content: {
                    "application/json": components["schemas"]["ContactProperty"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listTopics: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List topics, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Topic"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createTopic: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTopic"];
            };
        };
        responses: {
            /** @description Create a topic, which readers can leave without leaving the rest */
            201: {
                content: {
                    "application/json": components["schemas"]["Topic"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getTopic: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example top_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a topic */
            200: {
                content: {
                    "application/json": components["schemas"]["Topic"];
                };
            };
        };
    };
    deleteTopic: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example top_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a topic and what contacts have chosen about it */
            204: {
                content?: never;
            };
        };
    };
    updateTopic: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example top_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TopicChanges"];
            };
        };
        responses: {
            /** @description Change a topic */
            200: {
                content: {
                    "application/json": components["schemas"]["Topic"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listSegments: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List segments, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Segment"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createSegment: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSegment"];
            };
        };
        responses: {
            /** @description Create a segment: a filter of contacts with a name */
            201: {
                content: {
                    "application/json": components["schemas"]["Segment"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    countSegment: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CountSegment"];
            };
        };
        responses: {
            /** @description Count the contacts that pass a filter, and show some */
            200: {
                content: {
                    "application/json": components["schemas"]["SegmentCount"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getSegment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example seg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a segment */
            200: {
                content: {
                    "application/json": components["schemas"]["Segment"];
                };
            };
        };
    };
    deleteSegment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example seg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a segment */
            204: {
                content?: never;
            };
        };
    };
    updateSegment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example seg_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SegmentChanges"];
            };
        };
        responses: {
            /** @description Change the name or the filter of a segment */
            200: {
                content: {
                    "application/json": components["schemas"]["Segment"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listBroadcasts: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List broadcasts, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["BroadcastSummary"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewBroadcast"];
            };
        };
        responses: {
            /** @description Write a broadcast: a letter to the contacts of a segment */
            201: {
                content: {
                    "application/json": components["schemas"]["Broadcast"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"];
                };
            };
        };
    };
    deleteBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a broadcast */
            204: {
                content?: never;
            };
        };
    };
    updateBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BroadcastChanges"];
            };
        };
        responses: {
            /** @description Change a draft */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    checkBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Check a broadcast without sending it */
            200: {
                content: {
                    "application/json": components["schemas"]["BroadcastCheck"];
                };
            };
        };
    };
    checkBroadcastLinks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Check the links of a broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["BroadcastLinks"];
                };
            };
        };
    };
    testBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestBroadcast"];
            };
        };
        responses: {
            /** @description Send a test of a broadcast */
            202: {
                content: {
                    "application/json": components["schemas"]["TestedBroadcast"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    sendBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SendBroadcast"];
            };
        };
        responses: {
            /** @description Send a broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    pauseBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Pause a broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"];
                };
            };
        };
    };
    resumeBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Resume a paused broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"];
                };
            };
        };
    };
    cancelBroadcast: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancel a broadcast */
            200: {
                content: {
                    "application/json": components["schemas"]["Broadcast"];
                };
            };
        };
    };
    listBroadcastRecipients: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Only recipients of whom this holds. `sent`: the message has left. Opens and clicks are of people. */
                outcome?: "sent" | "delivered" | "bounced" | "complained" | "failed" | "opened" | "clicked" | "unsubscribed";
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List the recipients of a broadcast, the last first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["BroadcastRecipient"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    getBroadcastResults: {
        parameters: {
            query?: {
                /** @description Default: `hour`. */
                interval?: "hour" | "day";
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example bro_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get the rates of a broadcast, and its figures over time */
            200: {
                content: {
                    "application/json": components["schemas"]["BroadcastResults"];
                };
            };
        };
    };
    listSuppressions: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Only this address. Case does not matter. */
                email?: string;
                reason?: "bounce" | "complaint" | "manual";
                /** @description Part of the address. Case does not matter. */
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List suppressed addresses, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Suppression"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    addSuppression: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: idn-email
                     * @example ana@example.com
                     */
                    email: string;
                    note?: string | null;
                    expiresAt?: string | null;
                };
            };
        };
        responses: {
            /** @description Suppress an address */
            200: {
                content: {
                    "application/json": components["schemas"]["Suppression"] & components["schemas"]["MayWarn"];
                };
            };
            /** @description Suppress an address */
            201: {
                content: {
                    "application/json": components["schemas"]["Suppression"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    removeSuppression: {
        parameters: {
            query: {
                /** @description The address. Case does not matter. */
                email: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Remove an address from the suppression list */
            204: {
                content?: never;
            };
        };
    };
    addSuppressionBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @example [
                     *       "ana@example.com",
                     *       "ben@example.com"
                     *     ]
                     */
                    emails: string[];
                };
            };
        };
        responses: {
            /** @description Suppress up to 100 addresses. Each succeeds or fails separately */
            207: {
                content: {
                    "application/json": {
                        /** @description One result per address, in the same order. */
                        data: {
                            /** @description Present if the address is on the list. */
                            id?: string;
                            email?: string;
                            error?: components["schemas"]["ItemError"];
                        }[];
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    importContacts: {
        parameters: {
            query?: {
                /** @description Answers 200 with what the import would do, and changes nothing. */
                preview?: "1";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/csv": string;
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Import contacts from a file */
            200: {
                content: {
                    "application/json": components["schemas"]["ImportPreview"];
                };
            };
            /** @description Import contacts from a file */
            202: {
                content: {
                    "application/json": components["schemas"]["BegunImport"];
                };
            };
        };
    };
    importSuppressions: {
        parameters: {
            query?: {
                /** @description Answers 200 with what the import would do, and changes nothing. */
                preview?: "1";
                /** @description The reason of rows whose file has none. Default: `manual`. */
                reason?: "bounce" | "complaint" | "manual";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/csv": string;
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description Import suppressed addresses from a file */
            200: {
                content: {
                    "application/json": components["schemas"]["ImportPreview"];
                };
            };
            /** @description Import suppressed addresses from a file */
            202: {
                content: {
                    "application/json": components["schemas"]["BegunImport"];
                };
            };
        };
    };
    getImport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example imp_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get an import */
            200: {
                content: {
                    "application/json": components["schemas"]["Import"];
                };
            };
        };
    };
    listImportRows: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                /** @description Only these rows. */
                outcome?: "created" | "updated" | "unchanged" | "failed";
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example imp_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List what became of the rows of an import */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["ImportRow"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    getStats: {
        parameters: {
            query?: {
                /** @description ISO 8601 time or UTC day at which the range begins. If absent, the range has 7 days. */
                from?: string;
                /** @description ISO 8601 time at which the range ends (exclusive), or its last UTC day. If absent: now. */
                to?: string;
                /** @description UTC hours or days, `day` if absent. A range has at most 31 days by the hour and 366 by the day. */
                interval?: "hour" | "day";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get statistics of sent and received messages */
            200: {
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
        };
    };
    getQuota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get the remaining daily volume and quotas */
            200: {
                content: {
                    "application/json": components["schemas"]["Quota"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List webhooks, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["Webhook"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @example https://example.com/webhooks
                     */
                    url: string;
                    /**
                     * @description Event types to push, or `["*"]` for all.
                     * @example [
                     *       "delivery",
                     *       "bounce"
                     *     ]
                     */
                    eventTypes: ("accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected" | "*")[];
                    /** @description If absent: true if the key has emails:read. A key without that scope cannot set it to true. */
                    content?: boolean;
                };
            };
        };
        responses: {
            /** @description Create a webhook */
            201: {
                content: {
                    "application/json": components["schemas"]["Webhook"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a webhook */
            200: {
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delete a webhook and its log */
            204: {
                content?: never;
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @example https://example.com/webhooks
                     */
                    url?: string;
                    /** @description While it is false, events create no deliveries, and waiting deliveries fail when they are due. After it is true again, `/replay` sends those. */
                    enabled?: boolean;
                    /**
                     * @description Event types to push, or `["*"]` for all.
                     * @example [
                     *       "delivery",
                     *       "bounce"
                     *     ]
                     */
                    eventTypes?: ("accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected" | "*")[];
                    /** @description True needs a key with emails:read. If a key without that scope changes `url` or `eventTypes`, this becomes false. */
                    content?: boolean;
                };
            };
        };
        responses: {
            /** @description Update a webhook */
            200: {
                content: {
                    "application/json": components["schemas"]["Webhook"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description For how many seconds the previous secret also signs.
                     * @default 0
                     */
                    graceSeconds?: number;
                };
            };
        };
        responses: {
            /** @description Rotate a webhook's signing secret */
            200: {
                content: {
                    "application/json": components["schemas"]["Webhook"] & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description Items per page. */
                limit?: number;
                /** @description `nextCursor` of the previous page. Keep the filters the same from page to page. */
                cursor?: string;
                status?: "pending" | "succeeded" | "failed";
                /** @description Only deliveries about this message. With a filter, one page searches at most 100000 deliveries, so it may be short or empty although more follow. */
                messageId?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description List a webhook's deliveries, newest first */
            200: {
                content: {
                    "application/json": {
                        data: components["schemas"]["WebhookDelivery"][];
                        /**
                         * @description Null on the last page. A page may be shorter than `limit`, or even empty, without being the last.
                         * @example null
                         */
                        nextCursor: string | null;
                    };
                };
            };
        };
    };
    replayWebhookDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description The id.
                 * @example dlv_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Replay a delivery */
            202: {
                content: {
                    "application/json": {
                        id: string;
                        /** @constant */
                        status: "pending";
                    };
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    type?: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected";
                };
            };
        };
        responses: {
            /** @description Send a sample event to a webhook */
            202: {
                content: {
                    "application/json": {
                        id: string;
                        /** @enum {string} */
                        type: "accepted" | "queued" | "sending" | "sent" | "delivery_delayed" | "delivery" | "bounce" | "complaint" | "rejected" | "rendering_failure" | "failed" | "open" | "click" | "unsubscribed" | "inbound_received" | "inbound_rejected";
                        /** @constant */
                        testMode: true;
                    } & components["schemas"]["MayWarn"];
                };
            };
        };
    };
    getWebhookDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id.
                 * @example whk_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                id: string;
                /**
                 * @description The id.
                 * @example dlv_01k5x8q2m4e6r8t0v2w4y6z8a0
                 */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Get a delivery with its request and every attempt */
            200: {
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryDetail"];
                };
            };
        };
    };
    webhookEvent: {
        parameters: {
            query?: never;
            header: {
                /** @description `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<raw body>` with the webhook's signing secret. After a rotation, a second `v1` is made with the previous secret during its grace time. `t` is `createdAt` in seconds. */
                "Service-Signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id": "dlv_01k5x8q2m4e6r8t0v2w4y6z8a0",
                 *       "type": "bounce",
                 *       "createdAt": "2026-01-31T09:30:00.000Z",
                 *       "data": {
                 *         "messageId": "msg_01k5x8q2m4e6r8t0v2w4y6z8a0",
                 *         "senderId": "snd_01k5x8q2m4e6r8t0v2w4y6z8a0",
                 *         "email": "ben@example.com",
                 *         "occurredAt": "2026-01-31T09:29:58.120Z",
                 *         "tags": [],
                 *         "bounce": {
                 *           "type": "hard",
                 *           "reason": null,
                 *           "category": "mailbox",
                 *           "smtpCode": 550,
                 *           "enhancedCode": "5.1.1",
                 *           "diagnostic": "550 5.1.1 No such user",
                 *           "mx": "mx.example.com"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["WebhookEvent"];
            };
        };
        responses: {
            /** @description The signature is not valid. */
            400: {
                content?: never;
            };
            /** @description The endpoint wants no more events. */
            410: {
                content?: never;
            };
            /** @description The event was received. */
            "2XX": {
                content?: never;
            };
        };
    };
}
