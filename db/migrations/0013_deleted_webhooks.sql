-- When a webhook was deleted: its log, which may be long, goes bit by bit, then it goes itself. Nobody sees it meanwhile.
ALTER TABLE webhooks ADD COLUMN deleted_at INTEGER;
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at IS NOT NULL;
