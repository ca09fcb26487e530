-- Messages of the search index whose ids end so are milestones, at which a search may end a page.
INSERT INTO message_terms (rowid, terms)
  SELECT 70368744177664 - position, ' ' || substr(sender_id, -5) || 'milestone=' FROM messages
  WHERE position IS NOT NULL AND id LIKE '%00' ORDER BY position DESC;
