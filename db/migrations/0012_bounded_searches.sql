-- Terms of addresses and tags over 200 units long were cut there, so that many values could be one term. Messages that have
-- such ones enter the search index anew.
INSERT INTO messages_reentering (message_id, place)
  SELECT id, position FROM messages WHERE position IS NOT NULL AND (
    length(from_email) > 200
    OR length(tags) > 200 AND EXISTS (SELECT 1 FROM json_each(tags) t
      WHERE length(t.value ->> 'name') + length(t.value ->> 'value') > 199)
    OR length(to_list) > 200 AND EXISTS (SELECT 1 FROM json_each(to_list) t WHERE length(t.value ->> 'email') > 200)
    OR length(cc_list) > 200 AND EXISTS (SELECT 1 FROM json_each(cc_list) t WHERE length(t.value ->> 'email') > 200)
    OR length(bcc_list) > 200 AND EXISTS (SELECT 1 FROM json_each(bcc_list) t WHERE length(t.value ->> 'email') > 200));
UPDATE messages SET position = NULL WHERE id IN (SELECT message_id FROM messages_reentering);

-- Messages of the search index whose ids end so are milestones, at which a search may end a page.
INSERT INTO message_terms (rowid, terms)
  SELECT 70368744177664 - position, ' ' || substr(sender_id, -5) || 'milestone=' FROM messages
  WHERE position IS NOT NULL AND id LIKE '%00' ORDER BY position DESC;
