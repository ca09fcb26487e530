-- The work of a team on its threads: labels, a person and a folder.
-- labels: JSON. folder_until: the time when the thread leaves its folder, milliseconds. A snoozed one returns to the inbox; what is spam or
-- in the trash is deleted. NULL in the inbox.
ALTER TABLE threads ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE threads ADD COLUMN assignee_id TEXT;
ALTER TABLE threads ADD COLUMN folder TEXT NOT NULL DEFAULT 'inbox' CHECK (
  folder = 'inbox' OR folder = 'spam' OR folder = 'trash' OR folder = 'snoozed');
ALTER TABLE threads ADD COLUMN folder_until INTEGER;
CREATE INDEX threads_by_folder ON threads (sender_id, folder, last_message_at, id) WHERE folder <> 'inbox';
CREATE INDEX threads_leaving ON threads (folder_until) WHERE folder_until IS NOT NULL;
CREATE INDEX threads_by_assignee ON threads (assignee_id, last_message_at, id) WHERE assignee_id IS NOT NULL;
